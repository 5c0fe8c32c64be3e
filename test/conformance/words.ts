/** The words that stand for numbers in scripts: the tables of docs/protocol/monitoring.md, sections 2 to 5, and nothing else. */

export const commands = {
  NOP: 0,
  COLLECT: 1,
  STOP: 2,
  SUBSCRIBE: 3,
  BUFFER: 4,
  GET: 5,
  AUTH: 6,
  DEF_CHANNEL: 7,
  SET_CHANNEL: 8,
  DEL_CHANNEL: 9,
  COMMIT: 10,
  EXECUTE: 11,
  QUERY: 12,
  WRAP: 13,
} as const

export const messages = {
  RESPONSE: 0xffffffff,
  PRODUCER_CAPS: 0xfffffffe,
  AUTH: 0xfffffffd,
  GAP: 0xfffffffc,
  NOTICE: 0xfffffffb,
} as const

export const statuses = {
  OK: 0,
  AUTH_NEEDED: 1,
  AUTH_FAILED: 2,
  NOT_AUTHENTICATED: 3,
  ALREADY_AUTHENTICATED: 4,
  UNKNOWN_COMMAND: 5,
  INVALID_ARGUMENT: 6,
  NO_SUCH_METRIC: 7,
  NO_SUCH_ID: 8,
  NO_SUCH_CHANNEL: 9,
  NO_SUCH_CONTROL: 10,
  PERMISSION_DENIED: 11,
  UNSUPPORTED: 12,
  BUSY: 13,
  NO_SUCH_TRANSACTION: 14,
  INTERNAL: 15,
  QUOTA_EXCEEDED: 16,
  STORAGE_FULL: 17,
} as const

export const types = {
  INT32: 1,
  UINT32: 2,
  INT64: 3,
  UINT64: 4,
  DOUBLE: 5,
  BOOLEAN: 6,
  STRING: 7,
  OPAQUE: 8,
  REC: 9,
  ARRAY: 10,
  VOID: 11,
} as const

/** The words of JSON for the reasons of a GAP [MON 3.4]. */
export const gapReasons: Readonly<Record<number, string>> = {
  1: 'overflow',
  2: 'expired',
  3: 'damaged',
  4: 'purged',
  5: 'restart',
  6: 'full',
  7: 'restored',
  8: 'paused',
  9: 'replaced',
}

const places = { CURRENT: 0, ALL: 0xffffffff } as const

export type Words = ReadonlyMap<string, number>

/** The words of a frame that is sent, and of one that is expected: AUTH is a command and a message. */
export const sentWords: Words = new Map(Object.entries({ ...statuses, ...types, ...places, ...commands }))
export const expectedWords: Words = new Map(
  Object.entries({ ...commands, ...statuses, ...types, ...places, ...messages }),
)

export function wordOf(table: Readonly<Record<string, number>>, number: number): string | undefined {
  return Object.keys(table).find((word) => table[word] === number)
}

/** The counters of `producer.channels` before `dropped`, in their order [MON 8.9]. */
export const counters: readonly string[] = [
  ...['accepted', 'committed', 'in_flight', 'queued', 'queued_bytes', 'stored', 'unstored', 'gaps', 'oldest'],
]

/** The words of JSON for the codes of a NOTICE [MON 3.5]. */
export const noticeCodes: Readonly<Record<number, string>> = {
  1: 'WINDOW_FULL',
  2: 'SUPERSEDED',
  3: 'SHUTTING_DOWN',
  4: 'WITHDRAWN',
  5: 'CHANNEL_DELETED',
  6: 'PROTOCOL_ERROR',
  7: 'INTERNAL',
}
