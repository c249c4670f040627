"""Written forms that all languages share: markdown and links, which are not read out."""

from voicepipe.languages.written_form import constant

IN_LINK = "!-~\u00c0-\u024f\u0370-\u052f"
"""ASCII, and letters of scripts with spaces: what stands directly behind a link in others is no part of it."""
MARKDOWN = (
    constant("fence", "`", r"(?m:^)`{3}\w*", ""),
    constant("heading", "#", r"(?m:^)#{1,6}(?=\s)", ""),
    constant("quotation", ">", r"(?m:^)>(?=\s)", ""),
    constant("list", "-*+•", r"(?m:^)[-*+•](?=\s)", ""),
    constant("rule", " :|*_-", r"(?m:^)(?=[ :|]*[-*_]{3})[ :|*_-]+(?m:$)", ""),
    constant("cell's end", "|", r"\|(?=\s|$)", ","),
    constant("cell", "|", r"\|", " "),
    constant("link", "![", r"!?\[(?=[^\[\]\n]*\]\()", ""),
    constant("link's end", "]", r"\]\([^)\s]{0,500}\)", ""),
    constant("emphasis", "*_~`", r"\*{1,3}|_{2,3}|(?<!\w)_(?=\w)|(?<=\w)_(?!\w)|~~|`+", ""),
)
LINK = constant("URL", "h", rf"https?://[{IN_LINK}]*(?![.,;:!?)\]])[{IN_LINK}]", "")
