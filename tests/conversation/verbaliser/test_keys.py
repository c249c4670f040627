"""A telephone's keys, and digits that stars hide."""

from tests.conversation.verbaliser.rows import Row, rows


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
