/** A consumer that does nothing but ask who leads, so that it is known how long nobody was served, and when all nodes are there. */
import { setTimeout as delay } from 'node:timers/promises'
import { Link, type Listener, type User } from '../../rig/world/link.ts'
import { command } from '../../support/bytes.ts'
import { decoded, type Json } from '../../support/records.ts'
import type { ChaosNode, Nodes } from './nodes.ts'

/** How long an answer is waited for: a node may stop before it gives one. */
const ANSWER_MS = 500
const PAUSE_MS = 20
/** How long it may take until all nodes are there, and between two looks. */
const [PATIENCE_MS, LOOK_MS] = [60_000, 100]

export interface Asked {
  readonly listener: Listener
}

/** What the node that leads says of the cluster. */
export interface LeaderSaid {
  readonly leader: string
  readonly epoch: number
  readonly nodes: readonly { readonly role: string; readonly obstacle: string }[]
}

/** Resolves when some node answers that it leads in an epoch after `epoch`; rejects when the signal is aborted. */
export async function servedAfter(epoch: number, nodes: Asked, user: User, signal: AbortSignal): Promise<void> {
  while (((await leaderNow(nodes, user))?.epoch ?? 0) <= epoch) await delay(PAUSE_MS, undefined, { signal })
}

/** The node that leads, and its epoch, when all nodes follow it and all nats-servers have the whole log. */
export async function leaderOfAll(nodes: Nodes, user: User): Promise<{ leader: ChaosNode; epoch: number }> {
  const end = performance.now() + PATIENCE_MS
  for (;;) {
    const said = await leaderNow(nodes, user)
    const others = said?.nodes.filter(({ role, obstacle }) => role === 'not heard' || obstacle !== '')
    if (said !== undefined && others?.length === 0) {
      await nodes.inStep()
      const again = await leaderNow(nodes, user)
      if (again?.epoch === said.epoch) return { leader: nodes.named(said.leader), epoch: said.epoch }
    }
    nodes.healthy()
    if (performance.now() > end) throw new Error(`not all nodes are there: ${await nodes.look()}`)
    await delay(LOOK_MS)
  }
}

/** Undefined if nobody leads, or says it in time. */
export async function leaderNow({ listener }: Asked, user: User): Promise<LeaderSaid | undefined> {
  const late = delay(ANSWER_MS, undefined)
  // A node that just stops may refuse, too.
  const opening = Link.open(listener, user).catch(() => undefined)
  void late.then(() => opening).then((link) => link?.close())
  const link = await Promise.race([opening, late])
  if (typeof link !== 'object') return undefined
  try {
    return await Promise.race([leaderSaidOver(link), late])
  } finally {
    link.close()
  }
}

async function leaderSaidOver(link: Link): Promise<LeaderSaid | undefined> {
  const answer = new Promise<Json>((resolve) => {
    link.onMessage = (message) => message.kind === 'value' && resolve(decoded(message))
  })
  const ended = link.ended.then((): Json => undefined)
  const asked = await link.ask((seq) => command.query(seq, 'producer.cluster'))
  const state = asked?.status === 0 ? await Promise.race([answer, ended]) : undefined
  return state === undefined || state.leader === '' ? undefined : state
}
