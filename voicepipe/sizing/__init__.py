"""How much memory and time models take, by arithmetic: shapes and data sheets in, bytes and milliseconds out. What
calls cost: prices and seconds in, money out.

Nothing here touches a GPU. What arithmetic cannot give stands in one table, `constants.py`, with its source;
`tests/sizing` holds the formulas to published measurements.
"""
