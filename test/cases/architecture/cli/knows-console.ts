import '../console/view.tsx'
