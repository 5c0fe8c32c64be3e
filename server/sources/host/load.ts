/** /proc/loadavg: `0.07 0.15 0.09 1/88 4080`. The numbers behind the third count threads, not processes. */
import { decimal, words } from './numbers.ts'

export type Load = Readonly<Record<'one' | 'five' | 'fifteen', number | undefined>>

export function parseLoadavg(text: string): Load {
  const [one, five, fifteen] = words(text)
  return { one: decimal(one), five: decimal(five), fifteen: decimal(fifteen) }
}
