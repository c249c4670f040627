"""Sums, products and comparisons."""

from tests.conversation.verbaliser.rows import Row, rows


@rows("""
2*3=6 -> two times three equals six
2+2=4 -> two plus two equals four
2 + 2 = 4 -> two plus two equals four
10 - 4 = 6 -> ten minus four equals six
5 * 3 -> five times three
5 × 3 ÷ 2 -> five times three divided by two
<5 and > 6 -> less than five and greater than six
x >= 5, y ≤ 3 -> x greater than or equal to five, y less than or equal to three
10² and 2^8 -> ten squared and two to the power of eight
3x + 2 = 5 -> three x plus two equals five
10/2=5 -> ten divided by two equals five
-5 + 3 = -2 -> minus five plus three equals minus two
2 x $5 -> two times five dollars
10^-3, 5x10^3, x^2 -> ten to the power of minus three, five times ten to the power of three, x to the power of two
C++ and A+ -> C plus plus and A plus
""")
def test_sums_products_and_comparisons(row: Row) -> None:
    assert row.said() == row.expected
