/**
 * The thread of the history of a node of a cluster, which follows the log of the one that leads, or leads itself: `HistoryThread`
 * starts it by the name `#shared-history-worker`. A server that is alone loads nothing of NATS.
 */
import { once } from 'node:events'
import { setTimeout as delay } from 'node:timers/promises'
import { type MessagePort, parentPort, workerData } from 'node:worker_threads'
import { Backoff } from '../../../protocol/kept/backoff.ts'
import { History } from '../../../storage/history/history.ts'
import { MissingRecords } from '../../../storage/history/log/applier.ts'
import { fetchHistory, takeCopied } from '../../../storage/history/log/copy.ts'
import { HistoryLog } from '../../../storage/history/log/history-log.ts'
import { LoggedHistory } from '../../../storage/history/log/logged-history.ts'
import type { HistoryLead, HistoryLimits, HistoryLogOptions } from '../../../storage/history/store.ts'
import { BackgroundWork } from './background.ts'
import type { ThreadOptions, ToThread } from './messages.ts'
import { HistoryRecorder, type RecorderServices } from './recorder.ts'
import { threadServices } from './thread-services.ts'

/** The wait between two slices of work in the background, so that records are applied meanwhile. */
const PAUSE_MS = 5
/** Until a copy is asked for again, and how often nobody may answer before it is done without: no node may lead now. */
const AGAIN_MS = 3_000
const UNANSWERED = 10
/** After copies that did not come whole: each costs the node that leads a copy of its fresh.db. */
const AFTER_FAILURES = { firstMs: AGAIN_MS, maxMs: 60_000 }

interface Thread {
  readonly port: MessagePort
  readonly services: RecorderServices
}

const { shared, ...options } = workerData as ThreadOptions
if (parentPort !== null && shared !== undefined) {
  const thread = { port: parentPort, services: threadServices(parentPort) }
  if (shared.lead === undefined) await follow(shared.log, thread)
  else await lead(open(thread.services), shared.log, shared.lead, thread)
  // As in the thread of the database: the client of NATS may leave a socket that keeps the thread alive for minutes.
  process.exit()
}

function open({ wallMs }: RecorderServices): History {
  takeCopied(options.directory)
  return History.open({ ...options, clock: wallMs })
}

/** Leads until it is closed. Rejects if it cannot begin. */
async function lead(history: History, where: HistoryLogOptions, lead: HistoryLead, thread: Thread): Promise<void> {
  const { port, services } = thread
  const { wallMs } = services
  const closing = new AbortController()
  const { signal } = closing
  const closed = once(signal, 'abort')
  // What comes before the log was read waits, within the bounds of the channels.
  const early: ToThread[] = []
  let take = (message: ToThread): void => {
    if (message.kind === 'close') closing.abort()
    early.push(message)
  }
  port.on('message', (message: ToThread) => take(message))
  let opened: HistoryLog | undefined
  let failure: unknown
  try {
    const report = (problem: string): void => services.post({ kind: 'state', problem })
    opened = await HistoryLog.connect(where, { history, wallMs, signal, report })
    await opened.lead(lead)
    opened.sendCopies(where.cluster, options.directory)
  } catch (error) {
    failure = error
  }
  if (signal.aborted || failure !== undefined || opened === undefined) {
    await opened?.close()
    history.close()
    if (!signal.aborted) throw failure
    return
  }
  const log = opened
  const failed = (error: Error): void => {
    // The thread ends with it, and is made again.
    setImmediate(() => {
      throw error
    })
  }
  const logged = new LoggedHistory({ history, log, wallMs, logged: () => recorder.goOn(), failed })
  const recorder = new HistoryRecorder(logged, {
    ...services,
    later: (act) => {
      if (logged.isWaiting) setTimeout(act, PAUSE_MS)
      else setImmediate(act)
    },
    ended: () => closing.abort(),
  })
  take = (message) => recorder.handle(message)
  for (const message of early) recorder.handle(message)
  await closed
  await log.close()
}

/** Follows until it is closed. Rejects if it cannot. What is missing here is copied from the node that leads, if that answers. */
async function follow(where: HistoryLogOptions, { port, services }: Thread): Promise<void> {
  const closing = new AbortController()
  const { signal } = closing
  let following: Following | undefined
  let limits: HistoryLimits | undefined
  port.on('message', (message: ToThread) => {
    if (message.kind === 'close') closing.abort()
    else if (message.kind === 'tick') following?.background.begin()
    else if (message.kind === 'limit') {
      limits = message.limits
      following?.history.limit(limits)
    }
  })
  for (let isLost = false; !signal.aborted; ) {
    following = openFollowing(services)
    if (limits !== undefined) following.history.limit(limits)
    const isMissing = await following.follow(where, isLost, signal)
    following = undefined
    if (!isMissing) return
    isLost = !(await copied(where, services, signal))
    services.post({ kind: 'state', problem: '' })
  }
}

interface Following {
  readonly history: History
  readonly background: BackgroundWork
  /** Returns whether something is missing that the log does not have. */
  readonly follow: (where: HistoryLogOptions, isLost: boolean, signal: AbortSignal) => Promise<boolean>
}

function openFollowing(services: RecorderServices): Following {
  const { wallMs } = services
  const history = open(services)
  let problem = ''
  const background = new BackgroundWork(history, {
    ...services,
    later: (act) => setTimeout(act, PAUSE_MS),
    changed: () => report(problem),
  })
  const report = (found: string): void => {
    problem = found
    services.post({ kind: 'state', problem: problem || background.problem })
  }
  const reached = (): void => services.post({ kind: 'reached' })
  return {
    history,
    background,
    follow: async (where, isLost, signal) => {
      let log: HistoryLog | undefined
      try {
        log = await HistoryLog.connect(where, { history, wallMs, signal, report, reached, isLost })
        await log.follow()
      } catch (error) {
        if (error instanceof MissingRecords) return true
        if (!signal.aborted) throw error
      } finally {
        background.end()
        await log?.close()
        history.close()
      }
      return false
    },
  }
}

/** Fetches a copy, however often that fails; returns false if nobody has one to send, or it was given up. */
async function copied(where: HistoryLogOptions, services: RecorderServices, signal: AbortSignal): Promise<boolean> {
  const report = (problem: string): void => services.post({ kind: 'state', problem })
  const failures = new Backoff(AFTER_FAILURES)
  let unanswered = 0
  report('a copy of the history is fetched from the node that leads, since the log does not reach back to what is here')
  while (!signal.aborted && unanswered < UNANSWERED) {
    let pauseMs = AGAIN_MS
    try {
      if (await fetchHistory(where, options.directory, signal)) return true
      unanswered++
    } catch (error) {
      if (signal.aborted) return false
      report((error as Error).message)
      pauseMs = failures.next()
    }
    await delay(pauseMs, undefined, { signal }).catch(() => {})
  }
  return false
}
