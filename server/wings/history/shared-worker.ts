/**
 * The thread of the history of a node of a cluster, which follows the log of the one that leads, or leads itself: `HistoryThread`
 * starts it by the name `#shared-history-worker`. A server that is alone loads nothing of NATS.
 */
import { once } from 'node:events'
import { type MessagePort, parentPort, workerData } from 'node:worker_threads'
import { History } from '../../../storage/history/history.ts'
import { HistoryLog } from '../../../storage/history/log/history-log.ts'
import { LoggedHistory } from '../../../storage/history/log/logged-history.ts'
import type { HistoryLead, HistoryLogOptions } from '../../../storage/history/store.ts'
import { BackgroundWork } from './background.ts'
import type { ThreadOptions, ToThread } from './messages.ts'
import { HistoryRecorder, type RecorderServices } from './recorder.ts'
import { threadServices } from './thread-services.ts'

/** The wait between two slices of work in the background, so that records are applied meanwhile. */
const PAUSE_MS = 5

interface Thread {
  readonly port: MessagePort
  readonly services: RecorderServices
}

const { shared, ...options } = workerData as ThreadOptions
if (parentPort !== null && shared !== undefined) {
  const thread = { port: parentPort, services: threadServices(parentPort) }
  const history = History.open({ ...options, clock: thread.services.wallMs })
  if (shared.lead === undefined) await follow(history, shared.log, thread)
  else await lead(history, shared.log, shared.lead, thread)
  // As in the thread of the database: the client of NATS may leave a socket that keeps the thread alive for minutes.
  process.exit()
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

/** Follows until it is closed. Rejects if it cannot. */
async function follow(history: History, where: HistoryLogOptions, { port, services }: Thread): Promise<void> {
  const { wallMs } = services
  const closing = new AbortController()
  const { signal } = closing
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
  port.on('message', (message: ToThread) => {
    if (message.kind === 'close') closing.abort()
    else if (message.kind === 'limit') history.limit(message.limits)
    else if (message.kind === 'tick') background.begin()
  })
  let log: HistoryLog | undefined
  try {
    const reached = (): void => services.post({ kind: 'reached' })
    log = await HistoryLog.connect(where, { history, wallMs, signal, report, reached })
    await log.follow()
  } catch (error) {
    if (!signal.aborted) throw error
  } finally {
    background.end()
    await log?.close()
    history.close()
  }
}
