"""How models write thoughts and tool calls beside their words: what opens them, and what closes them."""

from voicepipe.engines.llm import markup

THOUGHTS = {
    **markup.THOUGHTS,
    "<think>": "</think>", "<thinking>": "</thinking>", "<thought>": "</thought>", "<thoughts>": "</thoughts>",
    "<reasoning>": "</reasoning>", "<reflection>": "</reflection>", "<scratchpad>": "</scratchpad>",
    "<analysis>": "</analysis>", "<seed:think>": "</seed:think>", "<mm:think>": "</mm:think>",
    "<longcat_think>": "</longcat_think>", "◁think▷": "◁/think▷", "<|begin_of_thought|>": "<|end_of_thought|>",
    "<|START_THINKING|>": "<|END_THINKING|>", "<|think|>": "<|/think|>", "<|thought|>": "<|/thought|>",
    "<think >": "</think >", "< think >": "< /think >", "<THINK>": "</ think>", '<think time="5 s">': "</think>",
    "<|channel>thought\n": "<channel|>",
}  # fmt: skip
CALLS = {
    **markup.CALLS,
    "<tool_call>": "</tool_call>", "<tool_calls>": "</tool_calls>",
    "<tool_calls><tool_call>": "</tool_call></tool_calls>",
    "<toolcall>": "</toolcall>", "<tool-call>": "</tool-call>", "<function_call>": "</function_call>",
    "<function_calls>": "</function_calls>", "<functioncall>": "</functioncall>", '<function name="w">': "</function>",
    '<invoke name="w">': "</invoke>", "<minimax:tool_call>": "</minimax:tool_call>",
    "<seed:tool_call>": "</seed:tool_call>", "<tool_response>": "</tool_response>", "<tools>": "</tools>",
    "<tool_use>": "</tool_use>", "<tool_result>": "</tool_result>", "<tool_code>": "</tool_code>",
    "<|tool_call|>": "<|/tool_call|>", "<|tool_response|>": "<|/tool_response|>",
    "<|tool_call_start|>": "<|tool_call_end|>", "<|tool_call_begin|>": "<|tool_call_end|>",
    "<|tool_calls_section_begin|><|tool_call_begin|>": "<|tool_call_end|><|tool_calls_section_end|>",
    "<｜tool▁calls▁begin｜>": "<｜tool▁calls▁end｜>", "<｜tool▁call▁begin｜>": "<｜tool▁call▁end｜>",
    "<|tool▁calls▁begin|>": "<|tool▁calls▁end|>", "<|tool_call>call:": "<tool_call|>",
    "<start_function_call>": "<end_function_call>", "<｜DSML｜function_calls>": "</｜DSML｜function_calls>",
}  # fmt: skip
