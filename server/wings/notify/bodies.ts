/** The templates of bodies: read with the configuration, so that a mistake in one keeps a configuration from being put in force. */
import { readFile } from 'node:fs/promises'
import { TemplateError } from '../../../promql/template/parse.ts'
import { ConfigError, type ConfigProblem } from '../../kit/config.ts'
import type { ReadContents } from '../../kit/io/address.ts'
import type { Reader } from '../../kit/peer.ts'
import type { NotifyTable } from './config.ts'
import { type Notification, testNotification } from './notification.ts'
import { bodyWire } from './wires/body.ts'

/** Of a template. */
const MAX_BYTES = 65_536

/** A table with the text of its template; '' without one. */
export type NotifierTable = NotifyTable & {
  readonly body: string
  /** Of one that a user has put; undefined of those of the configuration. */
  readonly origin?: NotifierOrigin | undefined
}

/** Whose a notifier is that a user has put. */
export interface NotifierOrigin {
  readonly author: string
  /** The id of the author. */
  readonly user: number
  /** Why it cannot tell anybody; '' if it can. */
  readonly problem: string
  /** The author as he is now, within the scope of what he put it with; undefined if he was removed. */
  readonly reader: () => Reader | undefined
  /** The contents of its files, which are none of this machine. */
  readonly read: ReadContents
  /** The address of `scheme://host:port` that may be connected to now. Rejects with an error for people. */
  readonly addressFor: (origin: string) => Promise<string>
}

/** Rejects with ConfigError if a template cannot be read, or does not give JSON. */
export async function withBodies(tables: readonly NotifyTable[], nowMs: number): Promise<readonly NotifierTable[]> {
  const problems: ConfigProblem[] = []
  const found = await Promise.all(
    tables.map(async (table): Promise<NotifierTable> => {
      if (table.template === undefined) return { ...table, body: '' }
      try {
        return withBody(table, await textOf(table.template), nowMs)
      } catch (error) {
        problems.push({ source: table.template, message: messageOf(error as Error, table.name) })
        return { ...table, body: '' }
      }
    }),
  )
  if (problems.length > 0) throw new ConfigError(problems)
  return found
}

/** Throws what is wrong with the text of a template. */
export function withBody(table: NotifyTable, body: string, nowMs: number): NotifierTable {
  tryOut({ ...table, body }, nowMs)
  return { ...table, body }
}

async function textOf(path: string): Promise<string> {
  const bytes = await readFile(path)
  if (bytes.length > MAX_BYTES) throw new TemplateError(`it has more than ${MAX_BYTES} bytes`)
  return bytes.toString()
}

/** Throws what is wrong for alerts that fire or for alerts that have ended. */
function tryOut(table: NotifierTable, nowMs: number): void {
  const wire = bodyWire(table)
  const ended = testNotification(nowMs)
  const firing: Notification = {
    ...ended,
    alerts: ended.alerts.map((alert) => ({ ...alert, state: 'firing', endedMs: 0 })),
  }
  for (const notification of [firing, ended]) wire.request(notification, nowMs)
}

function messageOf(error: Error, name: string): string {
  if (error instanceof TemplateError) return `the template of the notifier ${name}: ${error.message}`
  return `the template of the notifier ${name} cannot be read: ${error.message}`
}
