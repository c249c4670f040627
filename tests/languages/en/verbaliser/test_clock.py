"""Times of day, durations, and ranges of times."""

from tests.languages.en.verbaliser.rows import Row, rows


@rows("""
at 7:30 pm -> at seven thirty p m
at 7pm. -> at seven p m.
Dr. Rivera paid $12.50 at 3:05 p.m. -> Doctor Rivera paid twelve dollars fifty at three oh five p m.
3:05 p.m. today -> three oh five p m today
19:30, 7:05, 12:00 -> nineteen thirty, seven oh five, twelve o'clock
15:00 -> fifteen hundred
00:30, 00:00 -> zero thirty, midnight
7:00 a.m. today -> seven a m today
10:30am -> ten thirty a m
8 AM, 8 A.M. -> eight a m, eight a m.
3:05:20 -> three oh five and twenty seconds
7 o'clock -> seven o'clock
ratio 3:1, 16:9 -> ratio three to one, sixteen to nine
1h30 and 2h 15m -> one hour thirty minutes and two hours fifteen minutes
5 p.m. Friday -> five p m Friday
5:00 PM EST -> five p m EST
It opens at 9 a.m. We are there. -> It opens at nine a m. We are there.
at 10.30am -> at ten thirty a m
7.30pm-9.30pm, 7-9.30pm -> seven thirty p m to nine thirty p m, seven to nine thirty p m
1m 30s, 30s left -> one minute thirty seconds, thirty seconds left
2024-05-06T17:30:00Z -> May sixth, twenty twenty four, seventeen thirty UTC
""")
def test_times_of_day_and_durations(row: Row) -> None:
    assert row.said() == row.expected


@rows("""
Open 2pm-5pm. -> Open two p m to five p m.
2-5pm -> two to five p m
9am–5pm -> nine a m to five p m
9 a.m. - 5:30 p.m. -> nine a m to five thirty p m.
From 10:30-11:00. -> From ten thirty to eleven o'clock.
9:00-17:00 -> nine o'clock to seventeen hundred
noon-1pm, 9am-noon -> noon to one p m, nine a m to noon
10-11:30am -> ten to eleven thirty a m
""")
def test_ranges_of_times(row: Row) -> None:
    assert row.said() == row.expected
