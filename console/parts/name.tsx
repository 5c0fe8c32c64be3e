/**
 * A name from the network, which may be long, and written from right to left: cut in the middle, the whole one in the title, and
 * nothing around it changes its direction.
 */
const MAX_SHOWN = 56
const KEPT_AT_END = 20

export function Name({ text, max = MAX_SHOWN }: { readonly text: string; readonly max?: number }) {
  const short = shortened(text, max)
  return <bdi title={short === text ? undefined : text}>{short}</bdi>
}

/** At most `max` characters, of which the last ones are the end of the name. */
export function shortened(text: string, max: number): string {
  const characters = [...text]
  if (characters.length <= max) return text
  const end = Math.min(KEPT_AT_END, max >> 1)
  return `${characters.slice(0, max - end - 1).join('')}…${characters.slice(-end).join('')}`
}
