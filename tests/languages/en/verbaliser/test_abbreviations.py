"""What abbreviations stand for."""

from tests.languages.en.verbaliser.rows import Row, rows


@rows("""
Without it: w/o salt, w/ ice -> Without it: without salt, with ice
Dr. Ray, e.g. no. 5, etc. -> Doctor Ray, for example number five, et cetera.
No. Yes. -> No. Yes.
Mr. Lee vs. Mrs. Lee, i.e. Prof. Ray -> Mister Lee versus Missus Lee, that is Professor Ray
St. John, 12 Main St. -> Saint John, twelve Main Street.
12 Oak Dr. is near -> twelve Oak Drive is near
5th Ave. and Oak Blvd. -> fifth Avenue and Oak Boulevard.
Acme Inc. is here. -> Acme Incorporated is here.
approx. 5, min. 2, max. 3 -> approximately five, at least two, at most three
pp. 10-12 -> pages ten to twelve
fine & good -> fine and good
456 St. James St. -> four hundred fifty six Saint James Street.
Mt. Hood, Sgt. Lee -> Mount Hood, Sergeant Lee
n/a and w/out -> not applicable and without
w/in 5 days and w/o. -> within five days and without.
""")
def test_an_abbreviation_is_said_as_what_it_stands_for(row: Row) -> None:
    assert row.said() == row.expected
