/** A question before something is done. The focus is on Cancel, so that Enter alone does nothing. */
import type { ComponentChildren, RefObject } from 'preact'

interface ConfirmDialogProps {
  /** Opened by whoever asks, with `showModal`. */
  readonly dialog: RefObject<HTMLDialogElement | null>
  /** What the dialog is called for those who do not see it. */
  readonly name: string
  /** What the button says. */
  readonly label: string
  /** Whether something is lost by it. */
  readonly isDangerous?: boolean
  readonly onConfirm: () => void
  /** What is done exactly, below the question. */
  readonly details?: ComponentChildren
  readonly children: ComponentChildren
}

export function ConfirmDialog({
  dialog,
  name,
  label,
  isDangerous = false,
  onConfirm,
  details,
  children,
}: ConfirmDialogProps) {
  const close = (): void => dialog.current?.close()
  return (
    <dialog ref={dialog} aria-label={name}>
      <p>{children}</p>
      {details}
      <div class="row">
        <button type="button" autofocus onClick={close}>
          Cancel
        </button>
        <button
          type="button"
          class={isDangerous ? 'danger' : 'first'}
          onClick={() => {
            close()
            onConfirm()
          }}
        >
          {label}
        </button>
      </div>
    </dialog>
  )
}
