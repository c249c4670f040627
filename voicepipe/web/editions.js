// Which edition of the fleet's agents, routes and tenants each PoP goes by, and which ones differ. Pure.

const NAMED = 5;

/** {text, differs, note} of a PoP's cell. `newest`: what the directory has; null where it has none. */
export function editionOf({ edition }, newest) {
  if (!edition) return { text: "own files", differs: false, note: "It takes no editions (fleet.editions)." };
  const text = edition.number ? `${edition.number}` : "none";
  const differs = Boolean(newest) && edition.digest !== newest.digest && !edition.pinned;
  if (edition.problem) return { text, differs, note: edition.problem };
  if (edition.pinned) return { text: `${text}, stays`, differs, note: "It stays at this one (fleet.edition)." };
  return { text, differs, note: differs ? `The newest is ${newest.number}. It takes it over when it hears of it.` : "" };
}

/** Whether there is anything to tell of editions. */
export function tellsEditions(rows, newest) {
  return Boolean(newest) || rows.some(({ edition }) => edition);
}

/** A sentence where PoPs differ from the newest edition, or this directory could not take it over; else "". */
export function driftOf(rows, newest) {
  if (!newest) return "";
  const other = rows.filter((row) => row.edition && editionOf(row, newest).differs);
  const said = other.slice(0, NAMED).map((row) => {
    const { text, note } = editionOf(row, newest);
    return `${row.pop} (${text}${row.edition.problem ? `: ${note}` : ""})`;
  });
  if (other.length > NAMED) said.push(`${other.length - NAMED} more`);
  const sentences = said.length ? [`Not at edition ${newest.number}: ${said.join(", ")}.`] : [];
  if (newest.problem) sentences.push(`This directory goes by older routes and tenants: ${newest.problem}`);
  return sentences.join(" ");
}
