"""Dates, days, years and decades."""

from tests.languages.en.verbaliser.rows import Row, rows


@rows("""
On 15.01.2020. -> On January fifteenth, twenty twenty.
On 2026-05-14 -> On May fourteenth, twenty twenty six
5/14/2026 or 14 May 2026 -> May fourteenth, twenty twenty six or May fourteenth, twenty twenty six
15/01/2020, 1/15/20 -> January fifteenth, twenty twenty, January fifteenth, twenty twenty
15-01-2020 -> January fifteenth, twenty twenty
01.02.2024 -> February first, twenty twenty four
2020-01-15T10:30 -> January fifteenth, twenty twenty, ten thirty
Jan 15 -> January fifteenth
15 January 2020 -> January fifteenth, twenty twenty
Jan. 3rd, 2024 -> January third, twenty twenty four
January 3, 2024. -> January third, twenty twenty four.
Dec. 5 -> December fifth
15th January -> January fifteenth
the 15th of January -> the fifteenth of January
Jan 2024 -> January twenty twenty four
March 10-12 -> March tenth to twelfth
Jan 5 - Feb 3 -> January fifth to February third
12/25 and 5/14 -> December twenty fifth and May fourteenth
on 3/4 -> on March fourth
Mon, Jan 5 -> Monday, January fifth
In May. 10 of us -> In May. ten of us
May I? -> May I?
15.01.20 -> January fifteenth, twenty twenty
2024/03/15 -> March fifteenth, twenty twenty four
25th of December 2024 -> twenty fifth of December twenty twenty four
Mon. Jan 5 -> Monday January fifth
2020‑01‑15 -> January fifteenth, twenty twenty
Q1/2024, H2/2024, Q3-2024 -> Q one twenty twenty four, H two twenty twenty four, Q three twenty twenty four
05/2024, expires 12/2027 -> May twenty twenty four, expires December twenty twenty seven
Mon 5/6 or Tue, 7/8 -> Monday May sixth or Tuesday, July eighth
born 1/2/90 -> born January second, nineteen ninety
On 12.31.2023 -> On December thirty first, twenty twenty three
Mon/Wed/Fri -> Monday, Wednesday, Friday
""")
def test_dates(row: Row) -> None:
    assert row.said() == row.expected


@rows("""
From 1980-1986. -> From nineteen eighty to nineteen eighty six.
2019-20 -> twenty nineteen to twenty
1914–1918 -> nineteen fourteen to nineteen eighteen
Mon-Fri 9am-5pm -> Monday to Friday nine a m to five p m
Sat–Sun -> Saturday to Sunday
Monday-Friday -> Monday to Friday
Jan-Mar -> January to March
2023/24 -> twenty twenty three to twenty four
2010-11 and 2024-05 -> twenty ten to eleven and May twenty twenty four
'60s-'70s and 1960s–1970s -> sixties to seventies and nineteen sixties to nineteen seventies
Mon, Wed and Fri -> Monday, Wednesday and Friday
Tues-Thurs -> Tuesday to Thursday
1/15-1/20, 12/31-1/1 -> January fifteenth to January twentieth, December thirty first to January first
01/15/2024-01/20/2024 -> January fifteenth, twenty twenty four to January twentieth, twenty twenty four
15.01.2020-20.01.2020 -> January fifteenth, twenty twenty to January twentieth, twenty twenty
Jan 2020 - Mar 2021 -> January twenty twenty to March twenty twenty one
15 Jan - 20 Jan, 15-20 January -> January fifteenth to January twentieth, January fifteenth to twentieth
15–20 of January -> January fifteenth to twentieth
Jan 5, 2024 - Feb 3, 2025 -> January fifth, twenty twenty four to February third, twenty twenty five
""")
def test_ranges_of_dates_and_days(row: Row) -> None:
    assert row.said() == row.expected


@rows("""
since 1987 or 2005 -> since nineteen eighty seven or two thousand five
1900, 2000, 1905, 2010 -> nineteen hundred, two thousand, nineteen oh five, twenty ten
in 1066 -> in ten sixty six
The year 1984, the quantity 1,984.
-> The year nineteen eighty four, the quantity one thousand nine hundred eighty four.
Music of the 1980s. -> Music of the nineteen eighties.
Built in the 1990s and 2000s. -> Built in the nineteen nineties and two thousands.
the '80s, the 80s, ’90s -> the eighties, the eighties, nineties
in the mid-1960s -> in the mid nineteen sixties
the 2010s, the 1900s -> the twenty tens, the nineteen hundreds
in his 40s -> in his forties
in '98 and '05 -> in ninety eight and oh five
""")
def test_years_and_decades(row: Row) -> None:
    assert row.said() == row.expected
