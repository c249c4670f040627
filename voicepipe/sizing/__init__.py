"""How much memory and time models take, by arithmetic: shapes and data sheets in, bytes and milliseconds out. What
calls cost: prices and seconds in, money out.

Nothing here touches a GPU. The constants that arithmetic cannot give are set by published measurements, which
`tests/sizing` holds the formulas to; each is said where it stands.
"""
