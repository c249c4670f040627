"""The constants of sizing, in one table: the value, what it is, and by what it is known.

GPUs' data sheets are in `gpu_models.py`, models' shapes in `shapes.py`, what callers do in `traffic.py`. Sources:

[1] gpustack's performance lab: a token of Qwen3-8B on an H100, 7.1 to 7.4 ms in bf16, 5.6 in fp8; johnmusgrave.com: one
    of Llama-3.1-8B in bf16 on an A100-40, 13.3 ms. `tests/sizing/test_language.py` holds the formulas to both.
[2] faster-whisper's large-v3-turbo on an RTX 4090: 205 to 219 ms for 2 to 10 s of sound, in windows of 30 s.
[3] Nemotron Speech Streaming on an H100: 560 streams with chunks of 320 ms (NVIDIA, "Scaling Real-Time Voice Agents
    with Cache-Aware Streaming ASR", January 2026), 240 with chunks of 80 ms (vllm-project/vllm#47455).
[4] Stand-ins of true shape on an H100: `latency_probes/figures/h100-streaming.json` and the others of that day.
[5] gigagpu.com: Kokoro takes 0.3 s of a GPU for 10 s of speech; it does not say of which.
[6] The project's own configurations and engines, which tests compare with this table.
"""

from voicepipe.sizing.gpu_models import GIB

# Memory, in bytes
USABLE = 0.97  # share of a GPU's memory: the driver keeps the rest, and what is freed is not always whole. Estimate
CONTEXT = GIB // 2  # CUDA's own, of each process on a GPU. Estimate
LLM_WORKSPACE = 3 * GIB // 2  # vLLM's activations, CUDA graphs and NCCL's buffers on each GPU. Estimate
ASR_WORKSPACE = GIB  # activations of a batch, and what cuBLAS keeps. Estimate
TTS_WORKSPACE = GIB  # onnxruntime's arena, or torch's cache. Estimate
TTS_WEIGHTS = {"kokoro": 330_000_000, "coqui": 150_000_000}  # 82 million in float32; VITS: 36 and its vocoder's twin
BLOCK_TOKENS = 16  # of vLLM's cache, which is given out in blocks. vLLM's default
WHISPER_LOGITS = 224 * 51_865 * 4  # of each utterance: steps (half of 448) x vocabulary x float32. All of them are kept
WHISPER_BATCH = 8  # utterances in a pass: `whisper.batch` [6]
NEMOTRON_SLOT = 2 * 7_340_000  # what a call remembers, 16-bit, and its copy while it is settled [4]
NEMOTRON_STREAMS = 64  # slots that are set aside: `nemotron.streams` [6]
NEUTTS_CACHE = GIB  # `neutts.kv_cache_memory_bytes` [6]

# A language model
BANDWIDTH_SHARE = {
    "bf16": 0.80,
    "fp8": 0.60,
    "awq4": 0.50,
}  # of the memory, that reading reaches [1]; awq4: estimate
FLOPS_SHARE = 0.5  # share of the FLOPS that a prompt of some hundred tokens reaches. Estimate
STEP_MS = 1.0  # of each step, on the CPU: scheduling and sampling [1]
LAYER_MS = 0.015  # of each layer: launching its kernels from a CUDA graph [1]
REQUEST_MS = 6.0  # from our process to vLLM's and back: tokenising, its queue, its scheduler. Estimate
STEP_TOKENS = 512  # `vllm.args.max_num_batched_tokens`: a longer prompt is read in chunks. Left out: 2048 [6]
MOST_SEQUENCES = 32  # `vllm.args.max_num_seqs`: replies at a time. Left out: 128 [6]

# Whisper, by CTranslate2
ENCODER_FLOPS_SHARE = 0.11  # share of the FLOPS that the encoder reaches [2]
DECODER_BANDWIDTH_SHARE = 0.5  # share of the bandwidth that the decoder reaches [2]
WHISPER_LAYER_MS = 0.2  # of each layer of the decoder: launching its kernels one by one [2]
PASS_MS, FEATURES_MS = 10.0, 1.5  # on the CPU: a pass; the spectrogram of one second [2]
FRAMES_A_SECOND = 50  # of the encoder
WORDS_TOKENS_A_SECOND, PROMPT_TOKENS = 3.5, 4  # of speech; those before and behind. Decoded one by one, forced or not

# Nemotron Speech Streaming, by transformers
NEMOTRON_WEIGHTS, NEMOTRON_LAYERS, NEMOTRON_DIM = 617_000_000, 24, 1024  # `NemotronAsrStreamingForRNNT`
FRAME_MS, REMEMBERED = 80, 70  # a frame of the encoder; frames that each attends to
NEMOTRON_LAYER_MS = 0.14  # of each layer, its share of the transducer's loop included: a step of one row takes 4 ms [4]
NEMOTRON_FLOPS_SHARE = 0.0235  # that a batch reaches: fitted to both of [3], whole servers. By [4] it is 0.12
SETTLE_STEPS = 2  # steps of silence for the last words, behind a copy of the slot [6]

# Kokoro and VITS, which make whole phrases
RTF = {"kokoro": 0.03, "coqui": 0.02}  # time of one second of speech, in seconds [5]; coqui: estimate
KERNEL_SHARE = 0.3  # share of that in which kernels run; the rest is launching. Estimate: [4] took an eighth to a fifth
PHRASE_MS = 15.0  # of each phrase: phonemes on the CPU, launching. Estimate

# NeuTTS, which streams: a language model of sound (`voices.NEUTTS`) and a codec
SOUND_TOKENS_A_SECOND = 50  # of speech
VOICE_TOKENS = 512  # of its prompt: a recording of up to 8 s behind the phonemes, so that no prefix cache holds it
FIRST_TOKENS, WINDOW_TOKENS = 13, 160  # until the first window is decoded; of each window, 8 to 48 of them new [6]
CODEC_WEIGHTS = 188_000_000  # of the codec's decoder, float32: `NeuCodecModel`
CODEC_MS = 8.0  # launching its 300 kernels one by one. Estimate: an eager step of [4] launches 1,500 in 25 ms
CODEC_FLOPS = 0.05  # share of the bf16 FLOPS that float32 reaches: without tensor cores data sheets have 7 %

# Sharing a GPU, and judging a host
MPS_SHARE = 0.35  # with CUDA MPS, what a language model loses of what it would lose by turns: fitted to [4]
MOST_BUSY = 0.9  # share of the time in which a stage may work: the queue before a busier one grows without end
SLOW_LINK = 0.3  # share of a token's time in all-reduces from which on a link is too slow to share layers. Judgement
