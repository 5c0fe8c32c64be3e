/**
 * Says whether two nodes of a cluster have the same configuration, where they must: whichever leads serves by its own. What
 * belongs to a machine (its directory, its addresses, the paths of its files) may differ. What is in the files by which consumers
 * know the server and the server knows consumers may not: a consumer at any node has to do with those of the node that leads.
 */
import { createHash, scryptSync } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { isTomlTable } from '../kernel/config/value-types.ts'
import { WatchedFile } from '../kernel/core/watched-file.ts'
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
  'http.pages',
  'mono.file.path',
  'prometheus.scrapeConfig',
])
/** Keys of tables that are paths of files. */
const FILES: ReadonlySet<string> = new Set(['ca', 'cert', 'key', 'tokenFile', 'passwordFile', 'secretFile'])
const SALT = 'cinnabar: configuration'
/** 16 MiB and some 50 ms for each guess: a password may be all that somebody does not know of a configuration. */
const COST = 2 ** 14
const DIGEST_BYTES = 16

/** The digest of the configuration in force; it is taken anew after that, or one of its files, has changed. */
export class ConfigurationDigest {
  readonly #inForce: () => Config
  #config: Config
  #files: readonly WatchedFile[]
  #text: string

  constructor(inForce: () => Config) {
    this.#inForce = inForce
    this.#config = inForce()
    this.#files = filesOf(this.#config)
    this.#text = configurationDigest(this.#config)
  }

  get text(): string {
    return this.#text
  }

  /** To be called every second. */
  refresh(): void {
    const config = this.#inForce()
    // All of them have to be looked at.
    const changed = this.#files.filter((file) => file.look())
    if (config === this.#config && changed.length === 0) return
    this.#config = config
    this.#files = filesOf(config)
    this.#text = configurationDigest(config)
  }
}

function filesOf({ tls, jwt }: Config): WatchedFile[] {
  const files = { 'tls.cert': tls.cert, 'tls.client_ca': tls.clientCa, 'tls.client_revoked': tls.clientRevoked }
  const paths = Object.entries({ ...files, 'jwt.keys': jwt.keys })
  return paths.flatMap(([key, path]) => (path === undefined ? [] : new WatchedFile(path, key)))
}

/** The key and the digest of a file. */
function fileDigest({ key, path }: WatchedFile): string {
  try {
    return `${key} ${createHash('sha256').update(readFileSync(path)).digest('hex')}`
  } catch {
    return `${key} cannot be read`
  }
}

/**
 * 32 hexadecimal digits, the same for configurations that are the same where they must be. Secrets are in it, but cannot be found
 * from it by guessing, as nodes show it to each other. It takes some 50 ms, so it is for a start and a reload.
 */
export function configurationDigest(config: Config): string {
  const text = JSON.stringify([comparable(config, ''), filesOf(config).map(fileDigest)])
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
    return item === undefined || OF_THE_NODE.has(name) || (FILES.has(key) && typeof item === 'string')
      ? []
      : [[key, comparable(item, name)]]
  })
}
