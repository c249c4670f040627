"""Numbers without a unit, fractions, ordinals and ranges."""

from tests.languages.en.verbaliser.rows import Row, rows


@rows("""
1,000,000 or 1000000 -> one million or one million
1.5 million -> one point five million
76.3 trillion -> seventy six point three trillion
.5 and 3.14 -> zero point five and three point one four
-5 or 3.14 -> minus five or three point one four
−5 -> minus five
1.000.000 -> one million
1250000 -> one million two hundred fifty thousand
1234567 -> one two three, four five six seven
50+ people -> fifty plus people
~5 or ≈5 -> about five or about five
±5 -> plus or minus five
a 24-hour line -> a twenty four hour line
2-for-1 -> two for one
12,34,567 -> one million two hundred thirty four thousand five hundred sixty seven
10 000 or 1 234 567 -> ten thousand or one million two hundred thirty four thousand five hundred sixty seven
1,2,3 -> one, two, three
...5 -> ...five
No.5 -> number five
99/99/9999 -> nine nine slash nine nine slash nine nine nine nine
""")
def test_numbers_without_a_unit(row: Row) -> None:
    assert row.said() == row.expected


@rows("""
It takes 4 1/2 hours. -> It takes four and a half hours.
1/2, 1/3, 2/3, 3/4, 5/8 -> one half, one third, two thirds, three quarters, five eighths
2 1/4, 1 1/3, 3 5/8 -> two and a quarter, one and one third, three and five eighths
½ and 4½ and 4 ½ -> one half and four and a half and four and a half
3/4 cup -> three quarters cup
4.5/5 or 8/10 -> four point five out of five or eight out of ten
95/100 -> ninety five out of one hundred
24/7, 50/50, 20/20 -> twenty four seven, fifty fifty, twenty twenty
9/11 -> nine eleven
120/80 -> one hundred twenty over eighty
a 1/2-inch pipe -> a one half inch pipe
2-1/2 inches -> two and a half inches
1/10 and 4/5 -> one tenth and four fifths
3⁄4 -> three quarters
on 1/1 -> on January first
1/2-3/4 cup -> one half to three quarters cup
A 5/16" wrench, 5/16-inch -> A five sixteenths inch wrench, five sixteenths inch
3/16, 11/16, 1/2" or 2 1/2" -> three sixteenths, eleven sixteenths, one half inch or two and a half inches
2/3rds of us, a 1/12 share -> two thirds of us, a one twelfth share
room 204/205 -> room two zero four slash two zero five
score 45/60 or 95/97 -> score forty five out of sixty or ninety five slash ninety seven
On Friday, 3/4 full -> On Friday, three quarters full
""")
def test_fractions_scores_and_slashes(row: Row) -> None:
    assert row.said() == row.expected


@rows("""
5-7 people -> five to seven people
10–15 -> ten to fifteen
pages 10 - 12 -> pages ten to twelve
0.5-1.5 -> zero point five to one point five
1,000-2,000 -> one thousand to two thousand
500-1000 people -> five hundred to one thousand people
1st-3rd -> first to third
They won 3-2. -> They won three to two.
50-50 -> fifty fifty
5~10 -> five to ten
""")
def test_ranges_of_numbers(row: Row) -> None:
    assert row.said() == row.expected


@rows("""
the 1st and 22nd -> the first and twenty second
101st, 1,000th, 21ST -> one hundred first, one thousandth, twenty first
""")
def test_ordinals(row: Row) -> None:
    assert row.said() == row.expected


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
