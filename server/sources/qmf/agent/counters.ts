/** What an agent counts, for `producer.sensors`. */
export interface AgentCounters {
  /** Connections made so far. */
  connections: number
  /** Questions that were answered: G, M and S. */
  requests: number
  /** Messages of QMF v2, which is another protocol. */
  qmf2: number
  /** Messages that could not be read; refused where somebody waits for an answer. */
  malformed: number
  /** Questions that do not say where the answer goes; messages that no agent gets. */
  unexpected: number
  /** Questions beyond what may wait to be answered. */
  requestsFull: number
}

export function newAgentCounters(): AgentCounters {
  return { connections: 0, requests: 0, qmf2: 0, malformed: 0, unexpected: 0, requestsFull: 0 }
}
