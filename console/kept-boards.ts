/** The boards that the server keeps: one's own, and those that others of the tenant share (`producer.boards`). */
import type { Consumer, PlainRecord } from '../client/browser.ts'
import { type ChartSpec, chartsOf, chartsText } from './board.ts'
import { hasMore, recordsOf, useQuery } from './query.ts'

const BOARDS = 'producer.boards'

export interface KeptBoard {
  readonly board: number
  readonly owner: string
  readonly isOwn: boolean
  readonly name: string
  /** Others of the tenant may see it. */
  readonly isShared: boolean
  readonly version: number
}

export interface OpenedBoard extends KeptBoard {
  readonly charts: readonly ChartSpec[]
}

export interface KeptBoards {
  /** One's own first, by name. */
  readonly boards: readonly KeptBoard[]
  /** Whether there are more than one answer has. */
  readonly hasMore: boolean
  /** Why they cannot be listed; empty if they can. */
  readonly problem: string
}

/** `round`: another number asks again. */
export function useKeptBoards(consumer: Consumer, round: number): KeptBoards {
  const answer = useQuery(consumer, BOARDS, {}, { round })
  if (answer.kind === 'refused') return { boards: [], hasMore: false, problem: answer.reason }
  const plain = answer.kind === 'answer' ? answer.sample.plain : []
  return { boards: inOrder(recordsOf(plain).map(keptBoardOf)), hasMore: hasMore(plain), problem: '' }
}

/** One of them with its charts: undefined until it is there, null if the server keeps none with this number for the user. */
export function useOpenedBoard(
  consumer: Consumer,
  board: number | undefined,
  round: number,
): OpenedBoard | null | undefined {
  // No board has the number 0.
  const wanted = board ?? 0
  const answer = useQuery(consumer, BOARDS, { board: wanted }, { round })
  if (answer.kind === 'waiting') return undefined
  if (answer.kind === 'refused') return null
  const [record] = recordsOf(answer.sample.plain)
  // The answer to another question stays until the next one is there.
  if (record !== undefined && record['board'] !== wanted) return undefined
  return record === undefined ? null : openedBoardOf(record)
}

export function keptBoardOf(record: PlainRecord): KeptBoard {
  return {
    board: Number(record['board']),
    owner: String(record['owner']),
    isOwn: record['own'] === true,
    name: String(record['name']),
    isShared: record['shared'] === true,
    version: Number(record['version']),
  }
}

export function openedBoardOf(record: PlainRecord): OpenedBoard {
  return { ...keptBoardOf(record), charts: chartsOf(new URLSearchParams(String(record['charts'] ?? ''))) }
}

export function inOrder(boards: readonly KeptBoard[]): readonly KeptBoard[] {
  return boards.toSorted(
    (one, other) =>
      Number(other.isOwn) - Number(one.isOwn) || one.name.localeCompare(other.name) || one.board - other.board,
  )
}

/** Whether what is shown is what the server keeps. */
export function isKeptAs(kept: OpenedBoard, charts: readonly ChartSpec[], name: string): boolean {
  return kept.name === name && chartsText(kept.charts) === chartsText(charts)
}
