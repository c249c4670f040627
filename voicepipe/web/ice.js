// STUN and TURN servers, as whoever takes the call names them.

import { bearer } from "./bearer.js";

const PATIENCE_S = 1; // a PoP may have just died
let last = []; // as named before: most of them still serve

/** `at`: where the call goes, as `Places` says it. A token for a call is not used up by this. */
export async function iceServers({ url, token }) {
  const signal = AbortSignal.timeout(PATIENCE_S * 1000);
  const answer = await fetch(url.replace(/calls$/, "ice-servers"), { headers: bearer(token), signal }).catch(() => null);
  if (answer?.ok) last = (await answer.json()).ice_servers;
  return last;
}
