/** `producer.boards`: the boards that a user keeps here, and those that others of the tenant share. */
import type { Reader } from '../../../auth/permissions.ts'
import { BasicType } from '../../../protocol/monitor/constants.ts'
import type { Field } from '../../../protocol/monitor/value.ts'
import type { BoardRow } from '../../../storage/store.ts'
import type { StoredBoards } from '../accounts/boards.ts'
import { RecordList } from '../metrics/measure.ts'
import type { ProducerView } from './sensor.ts'

const { ARRAY, BOOLEAN, STRING, UINT32, UINT64 } = BasicType

/** The boards, as far as they are shown. */
export type ShownBoards = Pick<StoredBoards, 'ofTenant' | 'ownerOf'>

export function boardsView(boards: ShownBoards): ProducerView {
  return {
    metric: {
      name: 'producer.boards',
      exposition: 'none',
      kind: 'continuous',
      type: ARRAY,
      unit: '',
      description: 'Your boards of charts, and those that others of your tenant share, ordered by id.',
      parameters: [
        { name: 'board', type: UINT32, description: 'Only this one, with its charts.' },
        { name: 'after', type: UINT32, description: 'Only boards with a higher id.' },
      ],
    },
    *show(identity, args) {
      const only = args.get('board') as number | undefined
      const after = (args.get('after') as number | undefined) ?? 0
      const list = new RecordList()
      for (const board of boards.ofTenant(identity.tenant)) {
        yield
        const isWanted = only === undefined ? board.id > after : board.id === only
        if (!isWanted || !(board.shared || board.user === identity.userId)) continue
        if (!list.add(describe(board, boards, identity, only !== undefined))) break
      }
      return list.value()
    },
  }
}

function describe(board: BoardRow, boards: ShownBoards, { userId }: Reader, isWhole: boolean): Field[] {
  const { id, user, name, charts, shared, version, saved } = board
  return [
    { name: 'board', type: UINT32, value: id },
    { name: 'owner', type: STRING, value: boards.ownerOf(board) },
    { name: 'own', type: BOOLEAN, value: user === userId },
    { name: 'name', type: STRING, value: name },
    { name: 'shared', type: BOOLEAN, value: shared },
    { name: 'version', type: UINT32, value: version },
    { name: 'saved', type: UINT64, value: BigInt(Math.round(saved * 1000)) },
    ...(isWhole ? [{ name: 'charts', type: STRING, value: charts } as const] : []),
  ]
}
