/**
 * What a node says of itself, several times per lease, to all others: JSON on a subject of NATS that nothing stores. Whoever may
 * publish there is trusted, but what comes is checked like everything from outside: its size, its fields, their bounds.
 */
import { z } from 'zod'
import { type LogPlace, RECORD_HASH_BYTES } from '../../storage/replicated/place.ts'

/** `starting`: it takes over, or has done so and does not serve yet. */
const ROLES = ['follower', 'starting', 'leader'] as const
export type AliveRole = (typeof ROLES)[number]

/** A longer message is ignored. The longest that a node makes is less than half of it. */
export const MAX_ALIVE_BYTES = 4_096
/** Characters of an obstacle that others are shown. */
const MAX_OBSTACLE = 400

export interface Alive {
  readonly node: string
  /** Random, made at the start of the process: two processes with the same name are noticed by it. */
  readonly run: string
  readonly role: AliveRole
  /** The epoch in which it leads; 0 if it does not, or not yet. */
  readonly epoch: number
  /** The wall clock, in ms since 1970, at which it began to lead; 0 if it does not. */
  readonly since: number
  /** Where other nodes reach it by its own configuration, `host:port`; nobody connects there unless theirs says the same. */
  readonly address: string
  /** The last record that its database has. */
  readonly place: LogPlace
  /** How old the oldest record is that it has not stored, in ms. */
  readonly lagMs: number
  /** Why it could not lead, as a sentence; undefined if it could. */
  readonly obstacle: string | undefined
  /** It has handed over, or ends: others need not wait for it, and go first. */
  readonly leaves: boolean
  /** The highest number of the format of records that it can read. */
  readonly format: number
  readonly version: string
  /** A digest of what has to be the same in the configuration of all nodes. */
  readonly configuration: string
  /** Whether it answers once it has taken a stream of another node. The first versions do not. */
  readonly answers: boolean
}

/** Halves of pairs, which UTF-8 cannot have; a text that is cut may end with one. */
const LONE_SURROGATES = /\p{Surrogate}/gu

const count = z.int().min(0)
/** The last moment that a Date can be. */
const LAST_MS = 8.64e15
const word = (max: number) => z.string().regex(new RegExp(`^[\\x21-\\x7e]{1,${max}}$`))

const message = z.object({
  node: word(64),
  run: word(32),
  role: z.enum(ROLES),
  epoch: count,
  since: count.max(LAST_MS),
  address: word(300),
  log: count,
  logEpoch: count,
  sequence: count,
  hash: z.string().regex(new RegExp(`^[0-9a-f]{${2 * RECORD_HASH_BYTES}}$`)),
  lag: z.number().min(0).max(Number.MAX_SAFE_INTEGER),
  obstacle: z
    .string()
    .max(MAX_OBSTACLE)
    .refine((text) => text.search(LONE_SURROGATES) < 0)
    .optional(),
  leaves: z.boolean(),
  format: count,
  version: word(64),
  configuration: word(64),
  answers: z.boolean().default(false),
})

export function encodeAlive({ place, lagMs, obstacle, ...rest }: Alive): Uint8Array {
  const text = JSON.stringify({
    ...rest,
    log: place.log,
    logEpoch: place.epoch,
    sequence: place.sequence,
    hash: Buffer.from(place.hash).toString('hex'),
    lag: Math.round(lagMs),
    obstacle: obstacle?.slice(0, MAX_OBSTACLE).replace(LONE_SURROGATES, ''),
  } satisfies z.input<typeof message>)
  return new TextEncoder().encode(text)
}

/** undefined if it is too long, or no such message. A message of a newer version may have more fields. */
export function decodeAlive(bytes: Uint8Array): Alive | undefined {
  if (bytes.length > MAX_ALIVE_BYTES) return undefined
  const { success, data } = message.safeParse(parsed(bytes))
  if (!success) return undefined
  const { log, logEpoch, sequence, hash, lag, obstacle, ...rest } = data
  const place = { log, epoch: logEpoch, sequence, hash: new Uint8Array(Buffer.from(hash, 'hex')) }
  return { ...rest, place, lagMs: lag, obstacle }
}

function parsed(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes))
  } catch {
    return undefined
  }
}

/** Where the messages of all nodes go: a subject of NATS, or in tests something in memory. */
export interface Bus {
  /** Begins: from now on `receive` gets every message, also those of this node, in the order in which they were published. */
  open(receive: (bytes: Uint8Array) => void): void
  /** The message is lost if the nats-servers cannot be reached now. */
  publish(bytes: Uint8Array): void
  /** Closes after what was published is sent. Nothing is received any more. */
  close(): Promise<void>
}
