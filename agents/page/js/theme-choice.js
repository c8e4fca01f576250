// Runs before anything is painted, so that a chosen theme does not flash: no module.
(() => {
  const theme = localStorage.getItem("ldpstream.theme");
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
})();
