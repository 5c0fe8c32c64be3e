/** `board.*`: the boards of charts that a user keeps on the server [MON 9.18]. Nobody changes those of others. */
import { createHash } from 'node:crypto'
import { BasicType } from '../../../protocol/monitor/constants.ts'
import type { BoardRow } from '../../../storage/store.ts'
import {
  type BoardContent,
  MAX_BOARD_NAME,
  MAX_BOARDS,
  MAX_CHARTS_BYTES,
  type StoredBoards,
} from '../accounts/boards.ts'
import type { Clock } from '../core/clock.ts'
import { StatusError } from '../core/errors.ts'
import { stringArgument } from './administration.ts'
import {
  type Control,
  type ControlArguments,
  type ControlParameter,
  type ControlResult,
  failed,
  ok,
} from './control.ts'

export interface BoardControlsOptions {
  readonly boards: StoredBoards
  readonly clock: Pick<Clock, 'wallMs'>
  /** Resolves when everything that has changed so far is stored. */
  readonly stored: () => Promise<void>
}

const { BOOLEAN, REC, STRING, UINT32 } = BasicType
/** A character has at most four bytes. */
const MAX_NAME_BYTES = 4 * MAX_BOARD_NAME

const board: ControlParameter = { name: 'board', type: UINT32, description: 'Its id, as `producer.boards` shows it.' }
const version: ControlParameter = {
  name: 'version',
  type: UINT32,
  description: 'The version that you have seen: if it is another one by now, nothing is changed.',
}

export function boardControls({ boards, clock, stored }: BoardControlsOptions): Control[] {
  const save: Control = {
    name: 'board.save',
    description: 'Keeps a new board of yours, or changes one; what is left out stays. Returns its id and its version.',
    parameters: [
      { ...board, optional: true, description: `${board.description} If omitted: a new one.` },
      { ...version, optional: true, description: `${version.description} Needed with \`board\`.` },
      { name: 'name', type: STRING, optional: true, maxLength: MAX_NAME_BYTES, description: 'Needed for a new one.' },
      {
        name: 'charts',
        type: STRING,
        optional: true,
        maxLength: MAX_CHARTS_BYTES,
        // Which of two texts it was is enough for the audit log.
        masked: (text) => `sha256:${createHash('sha256').update(String(text)).digest('hex').slice(0, 16)}`,
        description: 'The charts, as the URL of the board in the console has them.',
      },
      {
        name: 'shared',
        type: BOOLEAN,
        optional: true,
        description: 'Whether the others of your tenant may see and copy it. If omitted, a new one is not shared.',
      },
    ],
    prepare(args, { identity }) {
      const content = contentOf(args)
      const id = args.get('board') as number | undefined
      if (id === undefined && content.name === undefined) throw invalid('name a `board`, or the `name` of a new one')
      if (id !== undefined && !args.has('version')) throw invalid('`version` is needed with `board`')
      return async () => {
        const own = boards.allOf(identity)
        const before = own.find((one) => one.id === id)
        if (id !== undefined && before === undefined) return noBoard(id)
        if (before !== undefined && before.version !== args.get('version')) return changed(before)
        if (own.some((one) => one.name === content.name && one.id !== id)) {
          return failed(`you have a board ${content.name} already: take another name`)
        }
        const { charts = '', shared = false } = { ...before, ...content }
        const whole = { name: content.name ?? before?.name ?? '', charts, shared }
        if (before === undefined && own.length >= MAX_BOARDS) {
          return failed(`a user has at most ${MAX_BOARDS} boards: delete one first`)
        }
        const saved = clock.wallMs()
        const after =
          before === undefined ? boards.add(identity, whole, saved) : boards.change(identity, before, whole, saved)
        await stored()
        return ok(`board ${after.id} is kept`, {
          type: REC,
          value: [
            { name: 'board', type: UINT32, value: after.id },
            { name: 'version', type: UINT32, value: after.version },
          ],
        })
      }
    },
  }

  const remove: Control = {
    name: 'board.delete',
    description: 'Deletes one of your boards.',
    parameters: [board, version],
    prepare(args, { identity }) {
      const id = args.get('board') as number
      return async () => {
        const before = boards.own(identity, id)
        if (before === undefined) return noBoard(id)
        if (before.version !== args.get('version')) return changed(before)
        boards.delete(identity, before)
        await stored()
        return ok(`board ${id} is deleted`)
      }
    },
  }

  return [save, remove]
}

function noBoard(id: number): ControlResult {
  return failed(`you have no board ${id}`)
}

function changed({ id, version }: BoardRow): ControlResult {
  return failed(`board ${id} was changed meanwhile, and has version ${version} now: open it again`)
}

/** What is given of a board. Throws StatusError. */
function contentOf(args: ControlArguments): Partial<BoardContent> {
  const name = stringArgument(args, 'name')
  const charts = stringArgument(args, 'charts')
  const shared = args.get('shared') as boolean | undefined
  if (name !== undefined && (name === '' || [...name].length > MAX_BOARD_NAME || /\p{Cc}/u.test(name))) {
    throw invalid(`a name has 1 to ${MAX_BOARD_NAME} printable characters`)
  }
  return {
    ...(name !== undefined && { name }),
    ...(charts !== undefined && { charts }),
    ...(shared !== undefined && { shared }),
  }
}

function invalid(detail: string): StatusError {
  return new StatusError('INVALID_ARGUMENT', detail)
}
