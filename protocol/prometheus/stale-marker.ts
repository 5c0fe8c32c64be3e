/** The NaN that says a series has ended (specification 1.0 of remote write, "Stale Markers"); arithmetic never gives it. */
export const STALE_NAN = { high: 0x7ff00000, low: 0x00000002 } as const
