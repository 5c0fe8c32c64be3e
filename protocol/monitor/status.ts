/** What the statuses of a RESPONSE mean [MON 4]. */
import { StatusCode, type StatusName } from './status-code.ts'

export { type StatusName, statusName } from './status-code.ts'

/** The statuses of a RESPONSE [MON 4]: code, name and what it tells a person. docs/statuses.md is made from this table. */
export const statuses = {
  OK: { code: StatusCode.OK, text: 'Done. If the command changes what survives, the change is stored.' },
  AUTH_NEEDED: {
    code: StatusCode.AUTH_NEEDED,
    text: 'The exchange goes on: one AUTH message follows, answer it with AUTH and an empty method.',
  },
  AUTH_FAILED: {
    code: StatusCode.AUTH_FAILED,
    text: 'Not admitted. It is not said which half was wrong. Three of these close the connection.',
  },
  NOT_AUTHENTICATED: { code: StatusCode.NOT_AUTHENTICATED, text: 'Before AUTH only AUTH, NOP and WRAP are looked at.' },
  ALREADY_AUTHENTICATED: {
    code: StatusCode.ALREADY_AUTHENTICATED,
    text: 'This connection is authenticated; open another one to be somebody else.',
  },
  UNKNOWN_COMMAND: { code: StatusCode.UNKNOWN_COMMAND, text: 'No command has this number.' },
  INVALID_ARGUMENT: {
    code: StatusCode.INVALID_ARGUMENT,
    text: 'The command does not decode, or an argument is not what the metric or control takes.',
  },
  NO_SUCH_METRIC: { code: StatusCode.NO_SUCH_METRIC, text: 'No such metric, or not one this identity may read.' },
  NO_SUCH_ID: { code: StatusCode.NO_SUCH_ID, text: 'No such metric id, or not yours.' },
  NO_SUCH_CHANNEL: { code: StatusCode.NO_SUCH_CHANNEL, text: 'No such channel, or not yours.' },
  NO_SUCH_CONTROL: { code: StatusCode.NO_SUCH_CONTROL, text: 'No such control, or not one this identity is shown.' },
  PERMISSION_DENIED: {
    code: StatusCode.PERMISSION_DENIED,
    text: 'The catalogue shows it to you, but you may not do this with it.',
  },
  UNSUPPORTED: { code: StatusCode.UNSUPPORTED, text: 'Not possible with this metric, channel, method or layer.' },
  BUSY: { code: StatusCode.BUSY, text: 'Not now; try again.' },
  NO_SUCH_TRANSACTION: {
    code: StatusCode.NO_SUCH_TRANSACTION,
    text: 'The current channel has never given this transaction id.',
  },
  INTERNAL: { code: StatusCode.INTERNAL, text: 'The producer failed; its log says how.' },
  QUOTA_EXCEEDED: { code: StatusCode.QUOTA_EXCEEDED, text: "Above the operator's limit." },
  STORAGE_FULL: {
    code: StatusCode.STORAGE_FULL,
    text: 'The disk is full; nothing new can be bound until there is room.',
  },
} as const satisfies { readonly [N in StatusName]: { readonly code: (typeof StatusCode)[N]; readonly text: string } }
