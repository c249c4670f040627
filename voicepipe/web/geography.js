// Places on the map and in words. Pure. The map's units are degrees: x to the east, y to the south.

export const NORTH = 80; // what is farther is not drawn: nobody calls from there
export const SOUTH = -57;

const CITIES = {
  Accra: [5.6, -0.2], Auckland: [-36.8, 174.8], Bangkok: [13.8, 100.5], Beijing: [39.9, 116.4], Berlin: [52.5, 13.4],
  Bogotá: [4.7, -74.1], "Buenos Aires": [-34.6, -58.4], Cairo: [30, 31.2], "Cape Town": [-33.9, 18.4],
  Chicago: [41.9, -87.6], Delhi: [28.6, 77.2], Dubai: [25.2, 55.3], Honolulu: [21.3, -157.9], Istanbul: [41, 29],
  Jakarta: [-6.2, 106.8], Lagos: [6.5, 3.4], Lima: [-12, -77], London: [51.5, -0.1], "Los Angeles": [34.1, -118.2],
  Madrid: [40.4, -3.7], Manila: [14.6, 121], "Mexico City": [19.4, -99.1], Montréal: [45.5, -73.6],
  Moscow: [55.8, 37.6], Mumbai: [19.1, 72.9], Nairobi: [-1.3, 36.8], "New York": [40.7, -74], Paris: [48.9, 2.4],
  Perth: [-31.9, 115.9], Rome: [41.9, 12.5], "São Paulo": [-23.6, -46.6], Seoul: [37.6, 127], Singapore: [1.4, 103.8],
  Stockholm: [59.3, 18.1], Sydney: [-33.9, 151.2], Tashkent: [41.3, 69.2], Tokyo: [35.7, 139.7],
  Vancouver: [49.3, -123.1],
};
const NEAR_KM = 400, EARTH_KM = 6371;

/** Names in the order of the alphabet, and where each is. */
export const cities = Object.entries(CITIES).map(([name, [latitude, longitude]]) => ({ name, latitude, longitude }));

export function pointOf({ latitude, longitude }) {
  return { x: longitude, y: -Math.min(NORTH, Math.max(SOUTH, latitude)) };
}

/** The place under a point, to a tenth of a degree; on the globe, whatever the point is. */
export function placeAt({ x, y }) {
  const tenth = (value, least, most) => Math.round(Math.min(most, Math.max(least, value)) * 10) / 10 + 0; // no -0
  return { latitude: tenth(-y, -90, 90), longitude: tenth(x, -180, 180) };
}

/** What was read of a place, from a form or a store; null: it is none. */
export function placeOf(read) {
  const latitude = Number(read?.latitude ?? NaN);
  const longitude = Number(read?.longitude ?? NaN);
  return Math.abs(latitude) <= 90 && Math.abs(longitude) <= 180 ? { latitude, longitude } : null;
}

function km(one, other) {
  const [north, east, a, b] = [one.latitude - other.latitude, one.longitude - other.longitude, one.latitude,
    other.latitude].map((degrees) => (degrees * Math.PI) / 180);
  const across = Math.cos(a) * Math.cos(b) * Math.sin(east / 2) ** 2;
  return 2 * EARTH_KM * Math.asin(Math.min(1, Math.sqrt(Math.sin(north / 2) ** 2 + across)));
}

/** "Paris", "near Paris", or "12.0 S, 140.5 W". */
export function placeName(place) {
  const [nearest] = cities.map((city) => ({ name: city.name, away: km(city, place) }))
    .sort((one, other) => one.away - other.away);
  if (nearest.away < NEAR_KM) return nearest.away < 30 ? nearest.name : `near ${nearest.name}`;
  const { latitude, longitude } = place;
  const side = (value, positive, negative) => `${Math.abs(value).toFixed(1)} ${value < 0 ? negative : positive}`;
  return `${side(latitude, "N", "S")}, ${side(longitude, "E", "W")}`;
}

/** The line of a call, as an SVG path. It goes the short way round: across the Pacific it leaves the map on one side and
 *  comes back on the other. */
export function arcBetween(from, to) {
  const [start, end] = [pointOf(from), pointOf(to)];
  const round = Math.abs(end.x - start.x) <= 180 ? 0 : Math.sign(start.x - end.x) * 360;
  const arc = bent(start, { x: end.x + round, y: end.y });
  return round ? `${arc} ${bent({ x: start.x - round, y: start.y }, end)}` : arc;
}

function bent(start, end) {
  const high = Math.min(start.y, end.y) - Math.hypot(end.x - start.x, end.y - start.y) * 0.25;
  return `M${start.x} ${start.y}Q${(start.x + end.x) / 2} ${high} ${end.x} ${end.y}`;
}

/** Points moved apart where they are closer than `least`: each {x, y}, in the order in which they came. */
export function spread(points, least) {
  const moved = points.map(({ x, y }) => ({ x, y }));
  for (let round = 0; round < 60; round++) {
    moved.forEach((one, at) => {
      for (const other of moved.slice(0, at)) {
        const [dx, dy] = [one.x - other.x, one.y - other.y];
        const apart = Math.hypot(dx, dy);
        if (apart >= least) continue;
        const [ux, uy] = apart ? [dx / apart, dy / apart] : [1, 0];
        const push = (least - apart) / 2;
        one.x += ux * push; one.y += uy * push;
        other.x -= ux * push; other.y -= uy * push;
      }
    });
  }
  return moved;
}
