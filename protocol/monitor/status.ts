/** The statuses of a RESPONSE [MON 4]: their numbers, and what they mean to a person. */
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

/** The same with a sentence each, for docs/statuses.md. It holds literals only, so that a bundler can leave it out. */
export const statuses = {
  OK: { code: 0, text: 'Done. If the command changes what survives, the change is stored.' },
  AUTH_NEEDED: {
    code: 1,
    text: 'The exchange continues: one AUTH message follows; answer it with AUTH and an empty method.',
  },
  AUTH_FAILED: {
    code: 2,
    text: 'Not admitted. The producer does not say which half was wrong. Three of these close the connection.',
  },
  NOT_AUTHENTICATED: { code: 3, text: 'Before AUTH only AUTH, NOP and WRAP are accepted.' },
  ALREADY_AUTHENTICATED: {
    code: 4,
    text: 'This connection is authenticated; open another one to log in as somebody else.',
  },
  UNKNOWN_COMMAND: { code: 5, text: 'No command has this number.' },
  INVALID_ARGUMENT: {
    code: 6,
    text: 'The command does not decode, or an argument is not what the metric or control takes.',
  },
  NO_SUCH_METRIC: { code: 7, text: 'No such metric, or not one this identity may read.' },
  NO_SUCH_ID: { code: 8, text: 'No such metric id, or not yours.' },
  NO_SUCH_CHANNEL: { code: 9, text: 'No such channel, or not yours.' },
  NO_SUCH_CONTROL: { code: 10, text: 'No such control, or not one this identity is shown.' },
  PERMISSION_DENIED: { code: 11, text: 'The catalogue shows it to you, but you may not do this with it.' },
  UNSUPPORTED: { code: 12, text: 'Not possible with this metric, channel, method or layer.' },
  BUSY: { code: 13, text: 'Not now; try again.' },
  NO_SUCH_TRANSACTION: { code: 14, text: 'The current channel has never given this transaction id.' },
  INTERNAL: { code: 15, text: 'The producer failed; its log says how.' },
  QUOTA_EXCEEDED: { code: 16, text: "Above the operator's limit." },
  STORAGE_FULL: { code: 17, text: 'The disk is full; nothing new can be bound until there is room.' },
} as const satisfies { readonly [N in StatusName]: { readonly code: (typeof StatusCode)[N]; readonly text: string } }

const names = new Map<number, StatusName>(Object.entries(StatusCode).map(([name, code]) => [code, name as StatusName]))

/** The name of a status code, or undefined for a code that this version does not know. */
export function statusName(code: number): StatusName | undefined {
  return names.get(code)
}
