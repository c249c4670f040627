// How a key, or a token that stands for one, travels with an HTTP request.

/** The headers; none without a key. */
export function bearer(key) {
  return key ? { Authorization: `Bearer ${key}` } : {};
}
