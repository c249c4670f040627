// Which labels of a crowded map are shown, and on which side of its mark each stands. Pure.

const CORNER = 0.75; // of a mark's radius: how far its corners are from its middle, in both directions
/** On which side of the mark a label begins, ends or has its middle: -1, 0, 1; to the east, and to the south. */
const BESIDE = [[1, 0], [-1, 0]];
const SIDES = [...BESIDE, [0, 1], [0, -1], [1, 1], [1, -1], [-1, 1], [-1, -1]];
const ANCHORS = { "-1": "end", 0: "middle", 1: "start" };

/** A place for each label where it touches no mark and no other label: {size, anchor, x, y}, or null where there is none.
 *  `x`: of the label's "start", "middle" or "end"; `y`: of its top. `marks`: {x, y, r, sizes, weight, always}. `sizes` are
 *  those of the label, the shortest first: {wide, tall}; `size` says which one has room. Heavier marks have their longest
 *  label before others have any, and those that `always` have one touch what they must. `bounds`: {west, east, north,
 *  south}. */
export function labelled(marks, bounds) {
  const circles = marks.map(({ x, y, r }) => ({ west: x - r, east: x + r, north: y - r, south: y + r }));
  const boxes = marks.map(() => null);
  const places = marks.map(() => null);

  const isFree = (box, own) => circles.every((circle, at) => at === own || !touch(box, circle)) &&
    boxes.every((other, at) => at === own || !other || !touch(box, other));

  function find(own, size) {
    const mark = marks[own];
    for (const side of places[own] ? [places[own].side, ...BESIDE] : SIDES) {
      const box = boxAt(mark, mark.sizes[size], side);
      if (!within(box, bounds) || !(mark.always || isFree(box, own))) continue;
      const x = { "-1": box.east, 0: mark.x, 1: box.west }[side[0]];
      [boxes[own], places[own]] = [box, { size, side, anchor: ANCHORS[side[0]], x, y: box.north }];
      return;
    }
  }

  const weights = [...new Set(marks.map(({ weight }) => weight))].sort((one, other) => other - one);
  for (const weight of weights) {
    const those = [...marks.keys()].filter((at) => marks[at].weight === weight);
    for (const own of those) find(own, 0);
    for (const own of those.filter((at) => places[at])) {
      for (let size = 1; size < marks[own].sizes.length; size++) find(own, size);
    }
  }
  return places;
}

function boxAt({ x, y, r }, { wide, tall }, [east, south]) {
  const away = east && south ? CORNER * r : r;
  const [west, north] = [x + east * away - (wide * (1 - east)) / 2, y + south * away - (tall * (1 - south)) / 2];
  return { west, north, east: west + wide, south: north + tall };
}

function within(box, bounds) {
  return box.west >= bounds.west && box.east <= bounds.east && box.north >= bounds.north && box.south <= bounds.south;
}

function touch(one, other) {
  return one.west < other.east && other.west < one.east && one.north < other.south && other.north < one.south;
}
