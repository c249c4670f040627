"""How long turns wait, judged on recordings: what a caller's silences tell is heard once (`collect`), and any rule of
waiting is then tried on it (`judge`), old beside new, on the same silences."""
