/**
 * The producers that an upstream says that it consumes. They are passed on to everybody who may know of them, so nothing is taken
 * that could not be: their paths, their ids, how many there are, and over how many levels.
 */
import type { Capabilities } from '../../../protocol/monitor/capabilities.ts'
import { PATH } from './tap.ts'

/** Levels of a tree, this server not counted. */
const MAX_DEPTH = 8
const MAX_BELOW = 10_000
/** The id of a producer; empty until it is known. */
const ID = /^[\x21-\x7e]{0,64}$/

/**
 * Their ids, by their paths at the upstream; empty for those that only the catalogue there names, in `paths`. `id`: that of this
 * server. Throws if that is one of them, or if one cannot be followed.
 */
export function consumedThere(
  caps: Capabilities | undefined,
  paths: readonly string[],
  id: string,
): Map<string, string> {
  const { producer, below = [] } = caps ?? {}
  if ([producer, ...below].some((one) => one?.id === id)) {
    throw new Error('this server is the upstream itself, or one that the upstream consumes: that would be a circle')
  }
  if (below.some(({ name }) => name.split('/').length >= MAX_DEPTH)) {
    throw new Error(`the upstream consumes others over more than ${MAX_DEPTH - 1} levels`)
  }
  const problem =
    below.length > MAX_BELOW ? `more than ${MAX_BELOW} of them` : below.find(({ name }) => !PATH.test(name))
  if (problem !== undefined) {
    const what = typeof problem === 'string' ? problem : `one with the path ${JSON.stringify(problem.name)}`
    throw new Error(`the upstream says that it consumes others that cannot be used here: ${what}`)
  }
  if ([producer, ...below].some((one) => one !== undefined && !ID.test(one.id))) {
    throw new Error('the upstream says ids of servers that cannot be used here')
  }
  const known = new Map(below.map((one) => [one.name, one.id]))
  for (const path of paths) if (!known.has(path) && PATH.test(path)) known.set(path, '')
  return known
}

/** Whether these are the same producers. */
export function isUnchanged(one: ReadonlyMap<string, string>, other: ReadonlyMap<string, string>): boolean {
  return one.size === other.size && [...one].every(([path, id]) => other.get(path) === id)
}
