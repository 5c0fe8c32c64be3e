/** The name of a board, and what keeps it on the server, renames it and deletes it there. */
import { useRef, useState } from 'preact/hooks'
import { ConfirmDialog } from './confirm-dialog.tsx'

interface BoardNamingProps {
  readonly name: string
  /** Whether the server keeps it for this user. */
  readonly isOwn: boolean
  /** Whether what is kept there is what is shown. */
  readonly isSame: boolean
  /** Whether others of the tenant may see it. */
  readonly isShared: boolean
  readonly isBusy: boolean
  readonly onSave: (name: string, isShared: boolean) => void
  readonly onDelete: () => void
}

export function BoardNaming({ name, isOwn, isSame, isShared, isBusy, onSave, onDelete }: BoardNamingProps) {
  const [text, setText] = useState(name)
  const [shares, setShares] = useState(isShared)
  const dialog = useRef<HTMLDialogElement>(null)
  const as = text.trim()
  const isRenamed = isOwn && isSame && as !== name
  return (
    <form
      class="naming"
      onSubmit={(event) => {
        event.preventDefault()
        if (!isBusy) onSave(as, shares)
      }}
    >
      <input
        name="board"
        aria-label="Name of the board"
        placeholder="Name of the board"
        required
        maxLength={80}
        value={text}
        onInput={({ currentTarget }) => setText(currentTarget.value)}
      />
      <label class="shares">
        <input
          type="checkbox"
          name="shares"
          checked={shares}
          onChange={({ currentTarget }) => setShares(currentTarget.checked)}
        />{' '}
        others may see it
      </label>
      <button type="submit" aria-disabled={isBusy}>
        {isRenamed ? 'Rename' : 'Save'}
      </button>
      {isOwn ? (
        <button type="button" aria-disabled={isBusy} onClick={() => dialog.current?.showModal()}>
          Delete
        </button>
      ) : null}
      <ConfirmDialog dialog={dialog} name={`Delete ${name}`} label="Delete" isDangerous onConfirm={onDelete}>
        Delete the board <bdi>{name}</bdi> on the server
        {isShared ? ', where others see it' : ''}
        {isSame ? '?' : '? It has other charts there than are shown here.'}
      </ConfirmDialog>
    </form>
  )
}
