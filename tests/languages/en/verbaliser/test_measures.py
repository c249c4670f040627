"""Numbers with a unit."""

from tests.languages.en.verbaliser.rows import Row, rows


@rows("""
12.5% of 5 km -> twelve point five percent of five kilometers
1% or .5% -> one percent or zero point five percent
+3% and -3% -> plus three percent and minus three percent
1 kg at 20°C -> one kilogram at twenty degrees Celsius
72°F, 72 °F, -5°C -> seventy two degrees Fahrenheit, seventy two degrees Fahrenheit, minus five degrees Celsius
20° and 1° -> twenty degrees and one degree
12kg, 2.5lb, 60mph, 500ml -> twelve kilograms, two point five pounds, sixty miles per hour, five hundred milliliters
5'10" tall -> five feet ten inches tall
6' 2" or 12" -> six feet two inches or twelve inches
2x4 -> two by four
10 x 12 ft -> ten by twelve feet
16GB at 100 Mbps -> sixteen gigabytes at one hundred megabits per second
100 km/h, 1 mph -> one hundred kilometers per hour, one mile per hour
1,200 sq ft -> one thousand two hundred square feet
1,200 sq. ft. of space -> one thousand two hundred square feet of space
50 m² -> fifty square meters
5 min. walk, 2 hrs. -> five minutes walk, two hours.
a 10-min walk, a 5-km run -> a ten minute walk, a five kilometer run
10k users -> ten thousand users
2x faster -> two times faster
3.5 kWh, 2 GHz -> three point five kilowatt hours, two gigahertz
1 ft -> one foot
72 degrees F -> seventy two degrees Fahrenheit
100 mg/dL -> one hundred milligrams per deciliter
a 12" pizza -> a twelve inch pizza
"take 5" -> "take five"
5 ft 10 in -> five feet ten inches
60 miles/hour, 7 days/week -> sixty miles per hour, seven days per week
5 million km -> five million kilometers
1.5M or 2M users -> one point five million or two million users
100 m2 -> one hundred square meters
5'-6', 5'6"-5'8" -> five feet to six feet, five feet six inches to five feet eight inches
10-12" wide, a 10-12" pizza -> ten to twelve inches wide, a ten to twelve inch pizza
10'x12' or 8.5" x 11" -> ten feet by twelve feet or eight point five inches by eleven inches
2x4s -> two by fours
10 m^2, 5 ft^3 -> ten square meters, five cubic feet
7 lb. 8 oz. of it, 2x/day -> seven pounds eight ounces of it, two times per day
a 55" TV -> a fifty five inch TV
""")
def test_numbers_with_a_unit(row: Row) -> None:
    assert row.said() == row.expected


@rows("""
100s of people, 1000s of calls -> hundreds of people, thousands of calls
10,000s, 100,000s -> tens of thousands, hundreds of thousands
100K, 5bn, 10K users, a 10K run -> one hundred thousand, five billion, ten thousand users, a ten K run
""")
def test_numbers_with_a_word_of_their_size(row: Row) -> None:
    assert row.said() == row.expected


@rows("""
2 1/2 lbs -> two and a half pounds
½ km -> one half kilometer
""")
def test_fractions_of_a_unit(row: Row) -> None:
    assert row.said() == row.expected


@rows("""
Take 2-5lb. -> Take two to five pounds.
1-5 kg, 1 kg-5 kg -> one to five kilograms, one kilogram to five kilograms
a 5-10-km run -> a five to ten kilometer run
5 km-10 km -> five kilometers to ten kilometers
20-25°C -> twenty to twenty five degrees Celsius
Save 10-15%. -> Save ten to fifteen percent.
10%-15% -> ten percent to fifteen percent
10-15 % -> ten to fifteen percent
2-3x -> two to three times
""")
def test_ranges_of_measures(row: Row) -> None:
    assert row.said() == row.expected


@rows("""
wait for 30s -> wait for thirty seconds
Hold 100s. -> Hold one hundred seconds.
""")
def test_an_s_behind_a_number_may_be_seconds(row: Row) -> None:
    assert row.said() == row.expected
