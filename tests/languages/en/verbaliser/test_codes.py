"""Numbers that name a thing, and words with digits inside."""

from tests.languages.en.verbaliser.rows import Row, rows


@rows("""
code 007 -> code zero zero seven
code 0042 -> code zero zero four two
The PIN is 1234. -> The PIN is one two three four.
order #4471 -> order number four four seven one
Order number 4471 is ready. -> Order number four four seven one is ready.
your confirmation code is 83920 -> your confirmation code is eight three nine two zero
confirmation code ABC-123 -> confirmation code ABC one two three
ABC123 -> ABC one two three
X7K42 -> X seven K four two
room A12 -> room A twelve
room 204 -> room two zero four
room 12 -> room twelve
room 100 -> room one hundred
gate B12 -> gate B twelve
flight BA 249 -> flight BA two four nine
BA249 -> BA two four nine
flight 1984 -> flight one nine eight four
zip code 90210 -> zip code nine zero two one zero
ZIP: 90210 -> ZIP: nine zero two one zero
Beverly Hills, CA 90210 -> Beverly Hills, CA nine zero two one zero
Boston, MA 02134 -> Boston, MA zero two one three four
94103-1234 -> nine four one zero three, one two three four
the card ending in 4242 -> the card ending in four two four two
4242 4242 4242 4242 -> four two four two, four two four two, four two four two, four two four two
SSN 123-45-6789 -> SSN one two three, four five, six seven eight nine
ISBN 978-3-16-148410-0 -> ISBN nine seven eight, three, one six, one four eight, four one zero, zero
#1 and # 2 -> number one and number two
No. 5 and Nos. 6 -> number five and numbers six
H2O and CO2 -> H two O and CO two
COVID-19, F-16 -> COVID nineteen, F sixteen
a 4-4-2 formation -> a four, four, two formation
5G, 4K and 3D -> five G, four K and three D
1080p or 720p -> ten eighty p or seven twenty p
1Z999AA1 -> one Z nine nine nine AA one
VIN 1HGCM82633A004352 -> VIN one HGCM eight two six three three A zero zero four three five two
F-16s, K-12 and R2-D2 -> F sixteens, K twelve and R two D two
401(k) -> four zero one k
PO Box 1234 -> PO Box one two three four
order #ABC-1234 -> order number ABC one two three four
order 250 of these -> order two hundred fifty of these
order number is 12-34-56 -> order number is twelve, thirty four, fifty six
SSN 123‑45‑6789 -> SSN one two three, four five, six seven eight nine
COVID‑19, ABC‑123 and 94103–1234 -> COVID nineteen, ABC one two three and nine four one zero three, one two three four
Boeing 737s, my iPhone 15s -> Boeing seven three sevens, my iPhone fifteens
24-7, 24/7/365 -> twenty four seven, twenty four seven three sixty five
""")
def test_a_code_is_said_digit_by_digit_and_a_count_is_not(row: Row) -> None:
    assert row.said() == row.expected
