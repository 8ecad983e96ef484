// Ranks the reference and the changelog behind the pages that answer questions. The numbers are those of Sphinx.
const REFERENCE = ["api/", "changelog", "contributing"];
var Scorer = {
  score: ([docname, , , , score]) => (REFERENCE.some((start) => docname.startsWith(start)) ? score - 100 : score),
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
