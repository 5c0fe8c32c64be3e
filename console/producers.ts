/**
 * The producers whose metrics the server serves besides its own [MON 9.13], by their paths, such as `east/rack1`. The path of the
 * server itself is the empty text: an argument `producer` is not needed for it.
 */
import type { Consumer, Sample } from '../client/browser.ts'
import type { Arguments } from './query.ts'

export const OWN = ''
/** Numbers in names are compared as numbers. */
export const naturalOrder = new Intl.Collator('en', { numeric: true })
/** One that does not answer holds up the others for so long. */
const DEADLINE_MS = 3_000

export interface Producers {
  /** What the server calls itself. */
  readonly name: string
  /** The paths of the others that may be seen, in natural order. */
  readonly below: readonly string[]
}

export function producersOf({ capabilities }: Pick<Consumer, 'capabilities'>): Producers {
  const { producer, below = [] } = capabilities ?? {}
  const paths = new Set(below.map(({ name }) => name))
  return { name: producer?.name ?? '', below: [...paths].sort(naturalOrder.compare) }
}

/** The argument that names a producer; none for the server itself. */
export function argumentsFor(producer: string): { readonly producer?: string } {
  return producer === OWN ? {} : { producer }
}

/** Arguments that ask all producers. Where the server consumes no other one, they are left as they are. */
export function ofAll({ below }: Producers, args: Arguments = {}): Arguments {
  return below.length === 0 ? args : { ...args, producer: '*', deadline_ms: DEADLINE_MS }
}

/** The path of the producer that a value is of. */
export function producerIn({ labels }: Pick<Sample, 'labels'>, { name }: Producers): string {
  const { producer = OWN } = labels
  return producer === name ? OWN : producer
}

/** A host as it is called where several producers have hosts. */
export function hostText(host: string, producer: string): string {
  return producer === OWN ? host : `${host} of ${producer}`
}
