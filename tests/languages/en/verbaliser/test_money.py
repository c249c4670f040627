"""Prices and ranges of them, in many currencies."""

from tests.languages.en.verbaliser.rows import Row, rows


@rows("""
It is $18.50. -> It is eighteen dollars fifty.
$1, $0.50, $4.05 -> one dollar, fifty cents, four dollars five
$0.01 and $.99 -> one cent and ninety nine cents
$12.5 -> twelve dollars fifty
$3.459 -> three point four five nine dollars
$1,234.56 -> one thousand two hundred thirty four dollars fifty six
1 cent, 50¢ and 1¢ -> one cent, fifty cents and one cent
€1,234.50 or 20€ -> one thousand two hundred thirty four euros fifty or twenty euros
€3,50 -> three euros fifty
3,50 € -> three euros fifty
1.234,56 € -> one thousand two hundred thirty four euros fifty six
£0.01, £0.20, £5 -> one penny, twenty pence, five pounds
¥500 -> five hundred yen
₹500 -> five hundred rupees
A$30 or R$50. -> thirty Australian dollars or fifty reais.
US$76.3 trillion -> seventy six point three trillion US dollars
C$20, NZ$1, HK$8.50 -> twenty Canadian dollars, one New Zealand dollar, eight Hong Kong dollars fifty
USD 30, 30 USD, EUR 1 -> thirty US dollars, thirty US dollars, one euro
CHF 20.50 -> twenty Swiss francs fifty
$2 trillion -> two trillion dollars
$2.5 million -> two point five million dollars
$1.5M, $5k, $3bn -> one point five million dollars, five thousand dollars, three billion dollars
-$5 and $-5 -> minus five dollars and minus five dollars
$20/hour or $5/mo -> twenty dollars per hour or five dollars per month
$100+ -> one hundred dollars plus
Between $250-$300. -> Between two hundred fifty to three hundred dollars.
$250-300 -> two hundred fifty to three hundred dollars
£20–£30 -> twenty to thirty pounds
20-30€ -> twenty to thirty euros
$1-2 million -> one to two million dollars
$10-$15.50 -> ten dollars to fifteen dollars fifty
$1.5M-$2M -> one point five million to two million dollars
$30 USD -> thirty US dollars
$15/hr-$20/hr -> fifteen to twenty dollars per hour
Rs. 500 and ₹1,500.50 -> five hundred rupees and one thousand five hundred rupees fifty
1.5¢ -> one point five cents
R$50,00 -> fifty reais
5€-10€ -> five to ten euros
$1.5-2 million, £1.5-2m -> one point five to two million dollars, one point five to two million pounds
€1.5-2bn, $1.5-$2 million, $0.5-1M
-> one point five to two billion euros, one point five to two million dollars, zero point five to one million dollars
$500-1 million -> five hundred dollars to one million dollars
₦5,000, ฿500 and 50฿ -> five thousand naira, five hundred baht and fifty baht
₫50,000, ₴500, NT$300 -> fifty thousand dong, five hundred hryvnias, three hundred Taiwan dollars
₹2 lakh or ₹2.5 crore -> two lakh rupees or two point five crore rupees
AUD$50, USD$50, US $50, 50 US$ -> fifty Australian dollars, fifty US dollars, fifty US dollars, fifty US dollars
€2,5 million, $2½ million -> two point five million euros, two and a half million dollars
₮500, -₦50, ￥500 -> five hundred tugrik, minus fifty naira, five hundred yen
$100s, $20s and $50s -> hundreds, twenties and fifties
¢99 -> ninety nine cents
""")
def test_amounts_of_money(row: Row) -> None:
    assert row.said() == row.expected
