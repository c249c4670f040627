// Which edition of the fleet's agents, routes and tenants each PoP goes by, and which ones differ. Pure.

const NAMED = 5;

/** {says, differs, note}: what a PoP's line tells of its edition; nothing where it is the newest. `newest`: what the
 *  directory has; null where it has none. */
export function editionOf({ edition }, newest) {
  if (!edition) return { says: "", differs: false, note: "" };
  const number = edition.number ? `edition ${edition.number}` : "no edition";
  const differs = Boolean(newest) && edition.digest !== newest.digest;
  if (edition.problem) return { says: number, differs: true, note: edition.problem };
  if (edition.pinned) return { says: `stays at ${number}`, differs: false, note: "fleet.edition of its own file" };
  return { says: differs ? number : "", differs, note: differs ? `The newest is ${newest.number}.` : "" };
}

/** A sentence where PoPs differ from the newest edition, or this directory could not take it over; else "". */
export function driftOf(rows, newest) {
  if (!newest) return "";
  const other = rows.filter((row) => editionOf(row, newest).differs);
  const said = other.slice(0, NAMED).map(({ pop, edition }) => {
    return `${pop} (${edition.number || "none"}${edition.problem ? `: ${edition.problem}` : ""})`;
  });
  if (other.length > NAMED) said.push(`${other.length - NAMED} more`);
  const sentences = said.length ? [`Not at edition ${newest.number}: ${said.join(", ")}.`] : [];
  if (newest.problem) sentences.push(`This directory goes by older routes and tenants: ${newest.problem}`);
  return sentences.join(" ");
}
