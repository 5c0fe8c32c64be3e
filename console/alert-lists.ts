/** The lists of alerts, rules, silences and notifications of the server, read again and again while a view shows them. */
import { useEffect, useState } from 'preact/hooks'
import type { Consumer, PlainRecord } from '../client/browser.ts'
import {
  type ActiveAlert,
  activeAlertOf,
  type NotificationLine,
  type NotifierLine,
  notificationLineOf,
  notifierLineOf,
  type RuleLine,
  ruleLineOf,
  type SilenceLine,
  silenceLineOf,
  tenantOf,
} from './alerts.ts'
import { type Arguments, pagesOf, recordsOf, untilAnswered, useQuery } from './query.ts'
import { type Refusal, refusalOf } from './refusals.ts'

/** What is shown is read again after this time. */
const EVERY_MS = 5_000
/** What takes long to read is read again after so many times as long. */
const READ_SHARE = 10
/** Records of one reading at most. */
const MOST_RECORDS = 5_000

export interface Readings<T> {
  /** Undefined until they are there. */
  readonly lines: readonly T[] | undefined
  /** Whether there are more than are read. */
  readonly hasMore: boolean
  readonly refusal: Refusal | undefined
  /** Reads them again at once. */
  readonly reload: () => void
}

/** A metric whose value is a list, and what is shown of a record of it. */
interface List<T> {
  readonly metric: string
  readonly lineOf: (record: PlainRecord) => T
  /** The field by which its pages go on; undefined if it has one page. */
  readonly key?: string
  /** An admin gets those of other tenants, too, and can do nothing about them here. */
  readonly hasOthers?: boolean
}

const ALERTS: List<ActiveAlert> = { metric: 'producer.alerts.active', lineOf: activeAlertOf, key: 'alert' }
const RULES: List<RuleLine> = { metric: 'producer.rules', lineOf: ruleLineOf, key: 'rule' }
const SILENCES: List<SilenceLine> = { metric: 'producer.silences', lineOf: silenceLineOf, hasOthers: true }
const NOTIFICATIONS: List<NotificationLine> = {
  metric: 'producer.notifications',
  lineOf: notificationLineOf,
  hasOthers: true,
}
const NOTIFIERS: List<NotifierLine> = { metric: 'producer.notifiers', lineOf: notifierLineOf, hasOthers: true }

/** Those of one's own tenant: `identity` has signed in. */
function useList<T>(
  consumer: Consumer,
  identity: string,
  { metric, lineOf, key = '', hasOthers = false }: List<T>,
  args: Arguments = {},
): Readings<T> {
  const [read, setRead] = useState<Omit<Readings<T>, 'reload'>>({
    lines: undefined,
    hasMore: false,
    refusal: undefined,
  })
  const [round, setRound] = useState(0)
  const question = JSON.stringify(args)
  useEffect(() => {
    const abort = new AbortController()
    const { signal } = abort
    const tenant = tenantOf(identity)
    let timer = 0
    const ask = async (after: string) =>
      untilAnswered(consumer, signal, () =>
        consumer.query(metric, after === '' ? args : { ...args, after: Number(after) }, { signal }),
      )
    const all = async (): Promise<typeof read> => {
      const lines: T[] = []
      for await (const records of pagesOf(ask, { key })) {
        lines.push(...records.filter((record) => !hasOthers || record['tenant'] === tenant).map(lineOf))
        if (lines.length >= MOST_RECORDS) return { lines, hasMore: true, refusal: undefined }
      }
      return { lines, hasMore: false, refusal: undefined }
    }
    const again = (pauseMs: number): void => {
      timer = window.setTimeout(() => (document.hidden ? again(pauseMs) : void look()), pauseMs)
    }
    const look = async (): Promise<void> => {
      const begunMs = performance.now()
      try {
        setRead(await all())
      } catch (error) {
        if (signal.aborted) return
        setRead({ lines: undefined, hasMore: false, refusal: refusalOf(error) })
      }
      again(Math.max(EVERY_MS, READ_SHARE * (performance.now() - begunMs)))
    }
    void look()
    return () => {
      clearTimeout(timer)
      abort.abort()
    }
  }, [consumer, identity, metric, question, round])
  return { ...read, reload: () => setRound((before) => before + 1) }
}

export function useActiveAlerts(consumer: Consumer, identity: string): Readings<ActiveAlert> {
  return useList(consumer, identity, ALERTS)
}

/** `group`: those of groups with this name alone. */
export function useRules(consumer: Consumer, identity: string, group?: string): Readings<RuleLine> {
  return useList(consumer, identity, RULES, group === undefined ? {} : { group })
}

/** `ended`: those that ended within the last days. */
export function useSilences(consumer: Consumer, identity: string, ended: boolean): Readings<SilenceLine> {
  return useList(consumer, identity, SILENCES, ended ? { ended } : {})
}

/** `only`: those of one notifier, or of the groups that know the alert with this fingerprint. */
export function useNotifications(
  consumer: Consumer,
  identity: string,
  only: { readonly notifier?: string; readonly alert?: string },
): Readings<NotificationLine> {
  return useList(consumer, identity, NOTIFICATIONS, { ...only })
}

export function useNotifiers(consumer: Consumer, identity: string): Readings<NotifierLine> {
  return useList(consumer, identity, NOTIFIERS)
}

/** The controls of alerts that this user may run; undefined until the server has answered. */
export function useAlertControls(consumer: Consumer): ReadonlySet<string> | undefined {
  const answer = useQuery(consumer, 'producer.controls', { match: 'alert.*' })
  if (answer.kind === 'waiting') return undefined
  return new Set(answer.kind === 'answer' ? recordsOf(answer.sample.plain).map((record) => String(record['name'])) : [])
}
