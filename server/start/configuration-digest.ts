/**
 * Says whether two nodes of a cluster have the same configuration, where they must: whichever leads serves by its own. What
 * belongs to a machine (its directory, its addresses, its certificates) may differ.
 */
import { createHash, scryptSync } from 'node:crypto'
import { isTomlTable } from '../config/value-types.ts'
import type { Config } from './config.ts'

/** Sections and keys that are those of one node. */
const OF_THE_NODE: ReadonlySet<string> = new Set([
  'producer.dataDir',
  'listen',
  'tls',
  'jwt.keys',
  'log',
  'cluster.node',
  'cluster.listen',
  'cluster.status',
  'cluster.tls',
  'cluster.nats',
  'cluster.natsCa',
  'cluster.credentials',
  'cluster.passwordFile',
  'gmetric.multicastInterface',
  // It is made of `url` and `listen`.
  'upstream.where',
])
const SALT = 'cinnabar: configuration'
/** 16 MiB and some 50 ms for each guess: a password may be all that somebody does not know of a configuration. */
const COST = 2 ** 14
const DIGEST_BYTES = 16

/**
 * 32 hexadecimal digits, the same for configurations that are the same where they must be. Secrets are in it, but cannot be found
 * from it by guessing, as nodes show it to each other. It takes some 50 ms, so it is for a start and a reload.
 */
export function configurationDigest(config: Config): string {
  const text = JSON.stringify(comparable(config, ''))
  const whole = createHash('sha256').update(text).digest()
  return scryptSync(whole, SALT, DIGEST_BYTES, { N: COST }).toString('hex')
}

/** A value in a form that does not depend on the order of its keys. Keys that are left out count as those without a value. */
function comparable(value: unknown, path: string): unknown {
  if (typeof value === 'bigint') return `${value}n`
  if (Array.isArray(value)) return value.map((item) => comparable(item, path))
  if (!isTomlTable(value)) return value
  const keys = Object.keys(value).sort()
  // An address to listen on: its host may be that of the node, such as 10.0.0.1, while feeds expect the same port everywhere.
  if (keys.join() === 'host,port') return value['port']
  return keys.flatMap((key) => {
    const name = path === '' ? key : `${path}.${key}`
    const item = value[key]
    return item === undefined || OF_THE_NODE.has(name) ? [] : [[key, comparable(item, name)]]
  })
}
