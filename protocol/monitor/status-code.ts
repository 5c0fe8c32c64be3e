/** The numbers of the statuses [MON 4]. What they tell a person stands in status.ts: a client does not need it. */
export const StatusCode = {
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

export type StatusName = keyof typeof StatusCode

const names = new Map<number, StatusName>(Object.entries(StatusCode).map(([name, code]) => [code, name as StatusName]))

/** The name of a status code, or undefined for a code that this version does not know. */
export function statusName(code: number): StatusName | undefined {
  return names.get(code)
}
