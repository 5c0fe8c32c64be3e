/** Durations as people write them: a whole number and one unit, "500ms", "30s", "7d". A bare number is refused: of what? */
const MILLISECONDS = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const

/** Milliseconds, or undefined where `text` is not a duration. */
export function parseDuration(text: string): number | undefined {
  const match = /^(\d{1,12})(ms|s|m|h|d)$/.exec(text)
  if (!match) return undefined
  return Number(match[1]) * MILLISECONDS[match[2] as keyof typeof MILLISECONDS]
}
