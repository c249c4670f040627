// The card of the caller: where calls are to come from, chosen on the map, from a list or by coordinates.

import { cities, placeName, placeOf } from "./geography.js";

const $ = (id) => document.getElementById(id);
const CHOSEN = "voicepipe.place"; // in sessionStorage: the playground calls from there, too

export class Caller {
  /** `onPlace()`: it is elsewhere. */
  constructor(onPlace) {
    this.onPlace = onPlace;
    this.place = remembered(); // {latitude, longitude}, or null
    $("city").append(new Option("A place on the map", ""), ...cities.map(({ name }) => new Option(name, name)));
    $("city").addEventListener("change", () => this.#takeCity());
    for (const id of ["latitude", "longitude"]) $(id).addEventListener("change", () => this.#takeCoordinates());
    $("forget").addEventListener("click", () => this.choose(null));
    $("where-form").addEventListener("submit", (event) => event.preventDefault());
    this.#show();
  }

  /** null: the directory is to assume something. */
  choose(place) {
    this.place = place;
    if (place) sessionStorage.setItem(CHOSEN, JSON.stringify(place));
    else sessionStorage.removeItem(CHOSEN);
    this.#show();
    this.onPlace();
  }

  #takeCity() {
    const city = cities.find(({ name }) => name === $("city").value);
    if (city) this.choose({ latitude: city.latitude, longitude: city.longitude });
  }

  #takeCoordinates() {
    const given = [$("latitude"), $("longitude")];
    if (given.every((field) => field.value !== "" && field.reportValidity())) {
      this.choose(placeOf({ latitude: $("latitude").value, longitude: $("longitude").value }));
    }
  }

  #show() {
    const place = this.place;
    $("where").textContent = place ? `The caller is ${atPlace(place)}.`
      : "No place chosen: the directory assumes that the caller is where it stands itself.";
    $("talk").textContent = `Talk in the playground${place ? " from this place" : ""}`;
    $("latitude").value = place?.latitude ?? "";
    $("longitude").value = place?.longitude ?? "";
    $("city").value = cities.find((city) => place && same(city, place))?.name ?? "";
    $("forget").hidden = !place;
  }
}

function remembered() {
  try {
    return placeOf(JSON.parse(sessionStorage.getItem(CHOSEN)));
  } catch {
    return null;
  }
}

function atPlace(where) {
  const name = placeName(where);
  return name.startsWith("near") ? name : /^\d/.test(name) ? `at ${name}` : `in ${name}`;
}

function same(one, other) {
  return one.latitude === other.latitude && one.longitude === other.longitude;
}
