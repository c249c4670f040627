"""Telephone numbers, extensions and numbers that one dials."""

from tests.languages.en.verbaliser.rows import Row, rows


@rows("""
Call 1-800-555-0199 now. -> Call one, eight zero zero, five five five, zero one nine nine now.
Call 1.800.555.0199. -> Call one, eight zero zero, five five five, zero one nine nine.
Call 1-888-555-1234. -> Call one, eight eight eight, five five five, one two three four.
1 800 555 0199 -> one, eight zero zero, five five five, zero one nine nine
1 (800) 555-0199 -> one, eight zero zero, five five five, zero one nine nine
1(800)555-0199 -> one, eight zero zero, five five five, zero one nine nine
+1-800-555-0199 -> plus one, eight zero zero, five five five, zero one nine nine
+1 (416) 555-0192 -> plus one, four one six, five five five, zero one nine two
+14165550192 -> plus one, four one six, five five five, zero one nine two
18005550199 -> one, eight zero zero, five five five, zero one nine nine
4165550192 -> four one six, five five five, zero one nine two
416.555.0192 -> four one six, five five five, zero one nine two
416/555-0192 -> four one six, five five five, zero one nine two
(555) 555-0142 -> five five five, five five five, zero one four two
(555)555-0142 -> five five five, five five five, zero one four two
416 555 0192 -> four one six, five five five, zero one nine two
555-0199 -> five five five, zero one nine nine
+44 20 7946 0958 -> plus four four, two zero, seven nine four six, zero nine five eight
+44 (0)20 7946 0958 -> plus four four, zero, two zero, seven nine four six, zero nine five eight
+49 30 123456 -> plus four nine, three zero, one two three, four five six
020 7946 0958 -> zero two zero, seven nine four six, zero nine five eight
01632 960001 -> zero one six three two, nine six zero, zero zero one
416-555-0192 ext. 12 -> four one six, five five five, zero one nine two, extension one two
(416) 555-0192 x34 -> four one six, five five five, zero one nine two, extension three four
416-555-0192, ext 105 -> four one six, five five five, zero one nine two, extension one zero five
extension 4021 -> extension four zero two one
ext. 12 -> extension twelve
1-800-FLOWERS -> one, eight zero zero, FLOWERS
1-888-GO-FEDEX -> one, eight eight eight, GO FEDEX
(800) FLOWERS or 1-800-CALL-NOW. -> eight zero zero, FLOWERS or one, eight zero zero, CALL NOW.
Call 911. -> Call nine one one.
dial 311 or 988 -> dial three one one or nine eight eight
Text STOP to 12345. -> Text STOP to one two three four five.
Text 741741 -> Text seven four one, seven four one
It has 988 seats. -> It has nine hundred eighty eight seats.
+442079460958 -> plus four four, two zero seven, nine four six, zero nine five eight
1.888.555.0142 x9 -> one, eight eight eight, five five five, zero one four two, extension nine
123-456-7890 -> one two three, four five six, seven eight nine zero
0800 555 0199 -> zero eight zero zero, five five five, zero one nine nine
Call 416‑555‑0192. -> Call four one six, five five five, zero one nine two.
1‑800‑555‑0199, 555‑0199
-> one, eight zero zero, five five five, zero one nine nine, five five five, zero one nine nine
212–555–0187 and 212‐555‐0187
-> two one two, five five five, zero one eight seven and two one two, five five five, zero one eight seven
1‑800‑FLOWERS -> one, eight zero zero, FLOWERS
+44 20‑7946‑0958 -> plus four four, two zero, seven nine four six, zero nine five eight
Ext. #204, Extension: 204 -> Extension two zero four, Extension two zero four
ext: 204 or 416-555-0192 ext: 12
-> extension two zero four or four one six, five five five, zero one nine two, extension one two
212-555-0187/0188 -> two one two, five five five, zero one eight seven, or zero one eight eight
""")
def test_a_telephone_number_is_said_in_its_groups(row: Row) -> None:
    assert row.said() == row.expected


@rows("""
Press *2 for sales. -> Press star two for sales.
Dial *67 or *69. -> Dial star six seven or star six nine.
Press the * key or the # sign -> Press the star key or the pound sign
Press 1, * or #. -> Press one, star or pound.
Dial *123#. -> Dial star one two three pound.
Press #1 -> Press pound one
Press **1** for sales, *2* for us. -> Press one for sales, two for us.
Enter 1234#, then *. -> Enter one two three four pound, then star.
Enter your PIN followed by #. -> Enter your PIN followed by pound.
Enter order #4471 -> Enter order number four four seven one
account ****1234 -> account one two three four
the card ending in *1234. -> the card ending in one two three four.
**** **** **** 4242 -> four two four two
**1234 people** -> twelve thirty four people
Then *67 people* came -> Then sixty seven people came
""")
def test_keys_of_a_telephone_are_named_and_stars_that_hide_digits_are_not(row: Row) -> None:
    assert row.said() == row.expected
