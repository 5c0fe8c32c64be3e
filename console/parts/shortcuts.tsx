/**
 * Keys that work everywhere: `/` searches, `?` shows this list, digits open the views. They can be switched off, since programs
 * that speak or listen send single keys too.
 */
import { useEffect, useMemo, useRef, useState } from 'preact/hooks'
import { BrowserStorage } from '../browser-storage.ts'
import { linkTo } from '../route.ts'
import { type Column, Table } from './table.tsx'

const STORED = 'cinnabar.shortcuts'

interface Shortcut {
  readonly keys: string
  readonly what: string
}

const EVERYWHERE: readonly Shortcut[] = [
  { keys: '/', what: 'search' },
  { keys: '?', what: 'this list' },
  { keys: 'Tab, Enter, Esc', what: 'go on, open, close' },
]
const COLUMNS: readonly Column<Shortcut>[] = [
  { isRowHead: true, cell: ({ keys }) => <kbd>{keys}</kbd> },
  { cell: ({ what }) => what },
]

interface ShortcutsProps {
  /** In the order of the rail. */
  readonly views: readonly { readonly view: string; readonly title: string }[]
}

export function Shortcuts({ views }: ShortcutsProps) {
  const dialog = useRef<HTMLDialogElement>(null)
  const storage = useMemo(() => new BrowserStorage(), [])
  const [isOn, setOn] = useState(storage.read(STORED) !== 'off')

  useEffect(() => {
    const pressed = (event: KeyboardEvent): void => {
      if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.composedPath()[0])) return
      const view = views[Number(event.key) - 1]
      if (event.key === '?') dialog.current?.showModal()
      else if (!isOn) return
      else if (event.key === '/') search()
      else if (view !== undefined) location.hash = linkTo(view.view)
      else return
      event.preventDefault()
    }
    addEventListener('keydown', pressed)
    return () => removeEventListener('keydown', pressed)
  }, [isOn, views])

  const toggle = (): void => {
    storage.write(STORED, isOn ? 'off' : 'on')
    setOn(!isOn)
  }
  const ofViews = views.map(({ title }, index): Shortcut => ({ keys: String(index + 1), what: title }))
  return (
    <>
      <button type="button" class="plain" onClick={() => dialog.current?.showModal()}>
        Keys <kbd>?</kbd>
      </button>
      <dialog ref={dialog} aria-label="Keys">
        <Table rows={[...EVERYWHERE, ...ofViews]} keyOf={({ keys }) => keys} columns={COLUMNS} />
        <p>
          <label class="check">
            <input type="checkbox" checked={isOn} onChange={toggle} /> Search and open views by single keys
          </label>
        </p>
        <div class="row">
          <button type="button" onClick={() => dialog.current?.close()}>
            Close
          </button>
        </div>
      </dialog>
    </>
  )
}

/** The search field of the view, or that of the metrics. */
function search(): void {
  const field = document.querySelector<HTMLInputElement>('main input[type=search]')
  if (field !== null) {
    field.focus()
    return
  }
  const shown = new MutationObserver(() => {
    const late = document.querySelector<HTMLInputElement>('main input[type=search]')
    if (late === null) return
    shown.disconnect()
    late.focus()
  })
  shown.observe(document.body, { childList: true, subtree: true })
  location.hash = linkTo('metrics')
}

function isTyping(target: EventTarget | undefined): boolean {
  if (!(target instanceof HTMLElement)) return false
  return target.isContentEditable || target.closest('input, textarea, select, dialog') !== null
}
