/**
 * The editor of expressions: CodeMirror with the language of Prometheus. It is large, and so loaded by the view that needs it alone. It
 * lives in a shadow of its own, since only there its styles are taken without a style element, which the page forbids.
 */
import {
  autocompletion,
  closeBrackets,
  closeBracketsKeymap,
  closeCompletion,
  completionKeymap,
} from '@codemirror/autocomplete'
import { defaultKeymap, history, historyKeymap } from '@codemirror/commands'
import { bracketMatching, HighlightStyle, syntaxHighlighting } from '@codemirror/language'
import { EditorState, Prec, StateEffect, StateField } from '@codemirror/state'
import { Decoration, type DecorationSet, drawSelection, EditorView, keymap, placeholder } from '@codemirror/view'
import { tags } from '@lezer/highlight'
import { PromQLExtension } from '@prometheus-io/codemirror-promql'
import { EqlRegex, Neq, NeqRegex } from '@prometheus-io/lezer-promql'
import type { Completion, LabelMatch } from '../completion.ts'

export interface EditorOptions {
  readonly text: string
  readonly label: string
  readonly completion: Completion
  /** Ctrl+Enter, or Cmd+Enter. */
  readonly onRun: () => void
}

export interface ExpressionEditing {
  readonly text: string
  setText(text: string): void
  /** Marks characters until the text changes; undefined marks none. */
  mark(range: { readonly from: number; readonly to: number } | undefined): void
  focus(): void
  end(): void
}

const OPERATORS: ReadonlyMap<number, LabelMatch['operator']> = new Map([
  [Neq, '!='],
  [EqlRegex, '=~'],
  [NeqRegex, '!~'],
])

/** In the shape that the editor wants, which numbers operators as its grammar does. */
function remoteOf(completion: Completion) {
  return {
    metricNames: () => completion.metricNames(),
    labelNames: (metricName?: string) => completion.labelNames(metricName),
    labelValues: (label: string, metricName?: string, matchers: readonly NumberedMatch[] = []) =>
      completion.labelValues(
        label,
        metricName,
        matchers.map((one) => ({
          name: one.name,
          operator: OPERATORS.get(one.type) ?? '=',
          value: one.value,
          matchesEmpty: () => one.matchesEmpty(),
        })),
      ),
    metricMetadata: () => completion.metricMetadata(),
    series: () => completion.series(),
    flags: () => completion.flags(),
  }
}

interface NumberedMatch extends Pick<LabelMatch, 'name' | 'value' | 'matchesEmpty'> {
  readonly type: number
}

const marked = StateEffect.define<{ readonly from: number; readonly to: number } | undefined>()

const marks = StateField.define<DecorationSet>({
  create: () => Decoration.none,
  update(before, { docChanged, effects, newDoc }) {
    let after = docChanged ? Decoration.none : before
    for (const effect of effects) {
      if (!effect.is(marked)) continue
      const range = effect.value
      const to = Math.min(range?.to ?? 0, newDoc.length)
      const from = Math.min(range?.from ?? 0, Math.max(0, to - 1))
      after = to === 0 ? Decoration.none : Decoration.set([Decoration.mark({ class: 'cm-wrong' }).range(from, to)])
    }
    return after
  },
  provide: (field) => EditorView.decorations.from(field),
})

/**
 * What replaces a selection is put in here: a browser would give it the style of what was there, as an attribute, which the page
 * forbids.
 */
const replacing = EditorView.domEventHandlers({
  beforeinput(event, view) {
    const { data, inputType, isComposing } = event
    const { from, to, empty } = view.state.selection.main
    if (inputType !== 'insertText' || data === null || isComposing || empty) return false
    const insert = () =>
      view.state.update(view.state.replaceSelection(data), { userEvent: 'input.type', scrollIntoView: true })
    const handlers = view.state.facet(EditorView.inputHandler)
    if (!handlers.some((handle) => handle(view, from, to, data, insert))) view.dispatch(insert())
    event.preventDefault()
    return true
  },
})

/** The colours are those of the page, which has both themes. */
const look = EditorView.theme({
  '&': { color: 'var(--text)', background: 'var(--page)', border: '1px solid var(--quiet)', borderRadius: '6px' },
  '&.cm-focused': { outline: '2px solid var(--in)', outlineOffset: '2px' },
  '.cm-content': { fontFamily: 'var(--mono)', fontSize: '14px', padding: '8px 0', caretColor: 'var(--text)' },
  '.cm-line': { padding: '0 10px' },
  '.cm-scroller': { maxHeight: '240px', overflow: 'auto' },
  '.cm-placeholder': { color: 'var(--quiet)' },
  '.cm-cursor': { borderLeftColor: 'var(--text)' },
  '&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground': {
    background: 'color-mix(in srgb, var(--in) 30%, transparent)',
  },
  '&.cm-focused .cm-matchingBracket': { background: 'var(--chosen)', outline: '1px solid var(--quiet)' },
  '.cm-wrong, .cm-lintRange-error': {
    backgroundImage: 'none',
    textDecoration: 'underline wavy var(--lost)',
    textDecorationSkipInk: 'none',
    textUnderlineOffset: '3px',
  },
  '.cm-tooltip': {
    color: 'var(--text)',
    background: 'var(--card)',
    border: '1px solid var(--line)',
    borderRadius: '6px',
    boxShadow: '0 4px 16px rgb(0 0 0 / 20%)',
    zIndex: '5',
  },
  '.cm-tooltip.cm-tooltip-autocomplete > ul': { fontFamily: 'var(--mono)', maxWidth: 'min(600px, 90vw)' },
  '.cm-tooltip-autocomplete > ul > li': { padding: '3px 8px' },
  '.cm-tooltip-autocomplete > ul > li[aria-selected]': { color: 'var(--text)', background: 'var(--chosen)' },
  '.cm-completionMatchedText': { textDecoration: 'none', fontWeight: '700' },
  '.cm-completionDetail': { color: 'var(--quiet)', fontStyle: 'normal' },
  '.cm-completionInfo': { maxWidth: '40ch', padding: '6px 10px' },
  '.cm-diagnostic': { borderLeftColor: 'var(--lost)' },
})

const colours = HighlightStyle.define([
  { tag: [tags.function(tags.variableName), tags.standard(tags.variableName)], color: 'var(--series-1)' },
  { tag: [tags.keyword, tags.modifier, tags.operatorKeyword], color: 'var(--series-5)' },
  { tag: tags.labelName, color: 'var(--attention)' },
  { tag: tags.string, color: 'var(--good)' },
  { tag: tags.number, color: 'var(--series-4)' },
  { tag: tags.comment, color: 'var(--quiet)' },
])

/** `place` must be empty, and is not used again after the end. */
export function openEditor(place: HTMLElement, { text, label, completion, onRun }: EditorOptions): ExpressionEditing {
  const root = place.shadowRoot ?? place.attachShadow({ mode: 'open', delegatesFocus: true })
  const language = new PromQLExtension().setComplete({ remote: remoteOf(completion) })
  const run = (editor: EditorView): boolean => {
    closeCompletion(editor)
    onRun()
    return true
  }
  const view = new EditorView({
    root,
    parent: root,
    state: EditorState.create({
      doc: text,
      extensions: [
        Prec.highest(keymap.of([{ key: 'Mod-Enter', run }])),
        history(),
        drawSelection(),
        bracketMatching(),
        closeBrackets(),
        autocompletion({ icons: false }),
        // Tab is in none of them: it leaves the editor.
        keymap.of([...closeBracketsKeymap, ...completionKeymap, ...historyKeymap, ...defaultKeymap]),
        language.asExtension(),
        syntaxHighlighting(colours),
        EditorView.lineWrapping,
        EditorView.contentAttributes.of({ 'aria-label': label, autocapitalize: 'off', autocorrect: 'off' }),
        placeholder('rate(http_requests_total[5m])'),
        marks,
        replacing,
        look,
      ],
    }),
  })
  return {
    get text() {
      return view.state.doc.toString()
    },
    setText(changed) {
      view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: changed } })
    },
    mark(range) {
      view.dispatch({ effects: marked.of(range && inUnits(view.state.doc.toString(), range)) })
    },
    focus: () => view.focus(),
    end() {
      language.destroy()
      view.destroy()
    },
  }
}

/** The server counts characters, the editor UTF-16 code units. */
function inUnits(
  text: string,
  { from, to }: { readonly from: number; readonly to: number },
): { from: number; to: number } {
  const characters = [...text]
  const units = (count: number): number => characters.slice(0, count).join('').length
  return { from: units(from), to: units(to) }
}
