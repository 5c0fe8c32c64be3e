/** A consumer that does nothing but ask who leads, so that it is known how long nobody was served. */
import { setTimeout as delay } from 'node:timers/promises'
import { command } from '../../support/bytes.ts'
import { decoded, type Json } from '../../support/records.ts'
import { Link, type Listener, type User } from '../kills/link.ts'

/** How long an answer is waited for: a node may have stopped in the middle of it. */
const ANSWER_MS = 500
const PAUSE_MS = 20

export interface Asked {
  readonly listener: Listener
}

/** Resolves when some node answers that it leads in an epoch after `epoch`; rejects when the signal is aborted. */
export async function servedAfter(epoch: number, nodes: Asked, user: User, signal: AbortSignal): Promise<void> {
  while ((await epochNow(nodes.listener, user)) <= epoch) await delay(PAUSE_MS, undefined, { signal })
}

/** 0 if nobody says it in time. */
async function epochNow(listener: Listener, user: User): Promise<number> {
  let link: Link | undefined
  const asking = async (): Promise<number> => {
    link = await Link.open(listener, user)
    if (link === undefined) return 0
    const opened = link
    const answer = new Promise<Json>((resolve) => {
      opened.onMessage = (message) => message.kind === 'value' && resolve(decoded(message))
    })
    const ended = opened.ended.then((): Json => undefined)
    const isAsked = await opened.ok((seq) => command.query(seq, 'producer.cluster'))
    const state = isAsked === undefined ? undefined : await Promise.race([answer, ended])
    return state === undefined || state.leader === '' ? 0 : state.epoch
  }
  const late = delay(ANSWER_MS, 0)
  try {
    return await Promise.race([asking(), late])
  } finally {
    link?.close()
  }
}
